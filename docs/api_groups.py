"""The public names by what one wants to do with them: the tables of the reference."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

GROUPS = {
    "Look at a table and bring it in": (
        "Before a fit: what is in the data, and how it becomes rows of ids and labels.",
        "look from_frame from_matrix from_tuples from_graph from_anndata to_anndata",
    ),
    "Co-cluster ratings, votes and measurements": (
        "Labelled rows (who, what, …) in any number of dimensions.",
        "CoClusteringRegressor CoClusteringClassifier LayeredCoClusteringRegressor Committee BayesianCoClustering "
        "JointCoClustering TreeCoClustering",
    ),
    "Cluster counts, baskets and graphs": (
        "Where an absent entry is a zero.",
        "CoOccurrenceClustering BasketRanker GraphClustering",
    ),
    "Compare views, use features with holes": (
        "Objects that are described in several ways, or only in part.",
        "PairwiseClusterAnalysis KernelCCA ExplanatoryClustering InformationClustering",
    ),
    "Understand a fitted model": (
        "Every model has ``describe``, ``to_frame``, ``recommend``, ``similar``, ``explain``, ``plot`` and ``report``.",
        "summarize Summary load",
    ),
    "Guarantee predictions": (
        "Certificates for predictions, lists and densities of any model. "
        "{doc}`Which one to quote </guide/which_certificate>`.",
        "certify_progressive certify_predictions certify_ranking certificates.Progressive models.ProgressivePredictor",
    ),
    "Guarantee clusters": (
        "Certificates for a checkerboard, for clusters from any library, and for the gain over a constant.",
        "certify Certificate",
    ),
    "Choose β and the number of clusters": (
        "All of this happens by itself when nothing is set.",
        "beta_path selection.BetaPath simplify selection.Selection workload_path",
    ),
    "Work on large data": ("Tables that do not fit into memory.", "fit_distributed OutOfCore"),
    "Set or add a loss, a family, a schedule": (
        "What a cell of the checkerboard answers, and what a mistake costs.",
        "losses.Absolute losses.Quadratic losses.ZeroOne losses.Logarithmic losses.Pinball losses.TableLoss "
        "losses.CellModel losses.check_loss losses.register_loss losses.register_family "
        "fitting.Constant fitting.Down",
    ),
    "Values below the models": ("What fits are made of.", "data.Alphabet data.Sample core.Posterior"),
    "Errors and warnings": (
        "Everything that a caller can put right is one of these.",
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
        yield from ("", "```{toctree}", ":hidden:", "")
        yield from (f"{name} <generated/{name}>" for name in listed.split())
        yield from ("```", "")


def summary(name: str) -> str:
    """The first sentence of a docstring, as one line of a table."""
    text = " ".join((inspect.getdoc(value(name)) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|").replace("*", "\\*")
