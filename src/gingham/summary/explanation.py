"""Explanation: why a model says what it says of a row, in values and in words."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.cards import card, paragraph, table


@dataclass(frozen=True)
class Place:
    """Where an item of the row stands.

    Attributes
    ----------
    side, item : str
    cluster : int
        Its number, from 1, at the readable size.
    name : str
        The cluster's.
    membership : float
        How surely the item belongs there.
    others : tuple of (int, str, float)
        Further clusters with a share of it: number, name, membership.
    """

    side: str
    item: str
    cluster: int
    name: str
    membership: float
    others: tuple[tuple[int, str, float], ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why this prediction.

    Attributes
    ----------
    row : tuple of str
    places : tuple of Place, one for each item of the row
    prediction : float, str or None
        What the model says; None of a single item.
    uncertainty : float or None
        Standard deviation of what may turn out, as far as the model knows; of a label, the chance that it is another.
    block : str
        What was observed where the clusters meet, in a sentence; empty for a single item.
    comparable : tuple of (tuple of str, float)
        Observed rows like this one: the same item with one of the same cluster, and what was observed.
    telling : tuple of (str, float)
        Of a single item: what was observed with it that says most about where it belongs.
    account : tuple of (str, float)
        What each part adds: the parts sum to ``total``. Of a single item, what moves its predictions most.
    total : float or None
        The prediction as a number: of labels that are names, the probability of the label that is explained.
    """

    row: tuple[str, ...]
    places: tuple[Place, ...]
    prediction: float | str | None = None
    uncertainty: float | None = None
    block: str = ""
    comparable: tuple[tuple[tuple[str, ...], float | str], ...] = ()
    telling: tuple[tuple[str, float], ...] = ()
    account: tuple[tuple[str, float], ...] = ()
    total: float | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = []
        if self.prediction is not None:
            about = "" if self.uncertainty is None else f" ± {self.uncertainty:.2g}"
            shown = self.prediction if isinstance(self.prediction, str) else f"{self.prediction:.3g}"
            if isinstance(self.prediction, str) and self.uncertainty is not None:
                about = f", with probability {1 - self.uncertainty:.0%}"
            lines.append(f"{' × '.join(self.row)}: {shown}{about}.")
        lines += [f"{value:+.2f} {why}" for why, value in self.account]
        for place in self.places:
            sure = "" if place.membership >= 0.995 else f", {place.membership:.0%} sure"
            lines.append(f"{place.side} {place.item!r} belongs to group {place.cluster}, “{place.name}”{sure}.")
            if place.others:
                also = "; ".join(f"group {number}, “{name}”, {share:.0%}" for number, name, share in place.others)
                lines.append(f"It also resembles {also}.")
        if self.block:
            lines.append(self.block)
        if self.telling:
            lines.append(
                "What says so most: " + ", ".join(f"{name} ({value:.3g})" for name, value in self.telling) + "."
            )
        if self.comparable:
            shown = "; ".join(f"{' × '.join(row)}: {_text(value)}" for row, value in self.comparable)
            lines.append(f"Comparable, and observed: {shown}.")
        return lines

    def _repr_html_(self) -> str:
        first, *rest = self._lines()
        rows = [[" × ".join(row), _text(value)] for row, value in self.comparable]
        told = [line for line in rest if not line.startswith("Comparable")]
        body = "".join(paragraph(line) for line in told)
        return card(first, body + (table(["comparable, and observed", ""], rows) if rows else ""))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
