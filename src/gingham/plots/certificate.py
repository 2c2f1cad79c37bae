"""Certificates as pictures: what was paid, and how the guarantee falls as data arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gingham.certificates import Certificate, Stream
from gingham.errors import GinghamError
from gingham.plots.style import ACCENT, COOL, INK, UNSEEN, axes_or_new

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def waterfall(certificate: Certificate, *, ax: Axes | None = None) -> Axes:
    """From the observed loss up to the guarantee, one step per term.

    The gap between the two is dealt out in proportion to the nats of each term; deductions (negative
    terms) step down.
    """
    terms = {name: nats for name, nats in certificate.terms.items() if nats != 0}
    total = sum(terms.values())
    if not terms or total <= 0 or not np.isfinite(certificate.value):
        raise GinghamError("This certificate has no terms to draw.")
    ax = axes_or_new(ax)
    gap = certificate.value - certificate.empirical
    steps = np.array(list(terms.values())) / total * gap
    tops = certificate.empirical + np.cumsum(steps)
    bottoms = tops - steps
    rows = np.arange(len(terms) + 2)
    ax.barh(0, certificate.empirical, color=COOL)
    ax.barh(rows[1:-1], steps, left=bottoms, color=[ACCENT if s > 0 else UNSEEN for s in steps])
    ax.barh(rows[-1], certificate.value, color=INK)
    for row, (end, nats) in enumerate(zip(np.maximum(tops, bottoms), terms.values()), start=1):
        ax.annotate(f" {nats:,.1f}", (end, row), va="center", fontsize="small", color=INK)
    ax.annotate(f" {certificate.empirical:.4g}", (certificate.empirical, 0), va="center", color=INK)
    ax.annotate(f" {certificate.value:.4g}", (certificate.value, rows[-1]), va="center", color=INK, weight="bold")
    ax.set_yticks(rows, ["observed loss", *terms, "guarantee"])
    ax.invert_yaxis()
    ax.set_xlim(right=max(certificate.value, float(tops.max())) * 1.12)
    ax.set_xlabel(f"{certificate.loss} loss (numbers at the steps: nats)")
    ax.set_title(f"{certificate.bound}, confidence {100 * (1 - certificate.delta):g} %")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def stream(certificates: Stream, *, ax: Axes | None = None) -> Axes:
    """The guarantee and the observed loss along a stream; all guarantees hold together."""
    ax = axes_or_new(ax)
    ax.plot(certificates.sizes, certificates.values, color=ACCENT, marker="o", label="guarantee")
    ax.plot(certificates.sizes, certificates.empirical, color=COOL, marker="o", label="observed")
    ax.set_xscale("log")
    ax.set_xlabel("tuples")
    ax.set_ylabel(f"{certificates.certificates[0].loss} loss")
    ax.legend(frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
