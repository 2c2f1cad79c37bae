"""The public names by task: the tables of the reference."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

GROUPS = {
    "Load data": (
        "Inspect a table, and turn it into rows of ids and labels.",
        "look from_frame from_matrix from_pairs from_graph from_anndata to_anndata",
    ),
    "Ratings, votes and measurements": (
        "Models for labelled rows (who, what, …) in any number of dimensions.",
        "CoClusteringRegressor CoClusteringClassifier LayeredCoClusteringRegressor LayeredCoClusteringClassifier "
        "SurveyCoClustering Committee BayesianCoClustering JointCoClustering TreeCoClustering",
    ),
    "Counts, baskets and graphs": (
        "Models for data in which an absent entry is a zero.",
        "CoOccurrenceClustering BasketRanker GraphClustering",
    ),
    "Several views, missing features": (
        "Models for objects with several descriptions, or with missing features.",
        "PairwiseClusterAnalysis KernelCCA ExplanatoryClustering InformationClustering",
    ),
    "Understand a fitted model": (
        "Every model has ``describe``, ``to_frame``, ``recommend``, ``similar``, ``explain``, ``plot`` and ``report``.",
        "summarize Summary load",
    ),
    "Certify predictions": (
        "Certificates for predictions, lists and densities of any model. "
        "{doc}`Which one to quote </guide/which_certificate>`.",
        "certify_progressive certify_predictions certify_ranking certificates.Progressive models.ProgressivePredictor",
    ),
    "Certify clusters": (
        "Certificates for a checkerboard, for clusters from any library, and for the gain over a constant.",
        "certify Certificate",
    ),
    "Choose β and the number of clusters": (
        "Models choose both by default. These functions show the alternatives.",
        "beta_path selection.BetaPath simplify selection.Selection",
    ),
    "Losses, families, schedules": (
        "What a cell of the checkerboard predicts, and what an error costs.",
        "losses.Absolute losses.Quadratic losses.ZeroOne losses.Logarithmic losses.Pinball losses.TableLoss "
        "losses.RankedProbability losses.CellModel losses.check_loss losses.register_loss losses.register_family "
        "fitting.Constant fitting.Down",
    ),
    "Building blocks": ("The values that fits consist of.", "data.Alphabet data.Sample core.Posterior"),
    "Errors and warnings": (
        "Every error that a caller can correct is a GinghamError.",
        "GinghamError RefusedCertificate GinghamWarning AdviceWarning UnseenItemsWarning",
    ),
}


def names() -> list[str]:
    """All names of all groups: those of gingham, and those of its modules with the module before them."""
    return [name for _, listed in GROUPS.values() for name in listed.split()]


def value(name: str) -> Any:
    """What a name stands for."""
    module, _, last = f"gingham.{name}".rpartition(".")
    return getattr(import_module(module), last)


def lines() -> Iterator[str]:
    """The groups as Markdown: a sentence, a table of names, and a hidden table of contents."""
    for title, (sentence, listed) in GROUPS.items():
        yield from (f"## {title}", "", sentence.replace("``", "`"), "", "| name | what it is |", "|---|---|")
        for name in listed.split():
            yield f"| {{doc}}`{name} <generated/{name}>` | {summary(name)} |"
        yield from ("", "```{toctree}", f":caption: {title}", ":hidden:", "")
        yield from (f"{name} <generated/{name}>" for name in listed.split())
        yield from ("```", "")


def summary(name: str) -> str:
    """The first sentence of a docstring, as one line of a table."""
    text = " ".join((inspect.getdoc(value(name)) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|").replace("*", "\\*")
