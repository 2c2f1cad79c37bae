"""The kinds of models that the command line knows, each by one record; reading them imports no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from gingham.errors import GinghamError, suggestion

Fact = Callable[[Any], object]


@dataclass(frozen=True)
class Kind:
    """What one kind of model wants of a table, and which options and commands have a use for it.

    Attributes
    ----------
    name, about : str
        What ``--model`` calls it, and what it is for.
    data : str
        What a table is to it: the module of `gingham.cli.tables` that reads it so.
    estimators : tuple of str
        Public classes of gingham; of two for labels, the second is for labels that are names.
    unused : tuple of str
        Options of ``gingham fit`` that are refused.
    """

    name: str
    about: str
    data: str
    estimators: tuple[str, ...]
    unused: tuple[str, ...] = ()
    pair: str = ""  # an example of --axes, where they are two
    axes: tuple[str, ...] = ()  # the columns of ids of a model made in Python
    needs_label: bool = False
    has_relations: bool = False  # whether further tables are taken
    renamed: Mapping[str, str | None] = field(default_factory=dict)  # options → parameters; None: not a parameter
    member: str = ""  # the kind of its members
    simplifies: bool = False
    instead: str = "Fit again with fewer --clusters."  # of simplifying
    has_posterior: bool = True  # whether a theorem for all posteriors covers it on the rows of its fit
    one_prediction: str = ""  # what it predicts, where rules and probabilities mean nothing
    not_by_row: str = ""  # what is certified, where single rows have no labels to test
    own_theorem: bool = False  # whether neither bound nor predictor can be chosen
    fit_facts: Mapping[str, Fact] = field(default_factory=dict)  # lines after a fit
    facts: Mapping[str, Fact] = field(default_factory=dict)  # lines on a page

    @property
    def tables(self) -> Any:
        """The module that turns tables into its data, and back."""
        return import_module(f"gingham.cli.tables.{self.data}")


def loss_name(model: Any) -> str:
    """The loss that a checkerboard or a tree was fitted with, by its name where it has one."""
    from gingham.cells.losses import cell_state

    return str(cell_state(model.posterior_.label_cell())["loss"] if model.loss == "auto" else model.loss)


SWEEPS: dict[str, Fact] = {"sweeps": lambda model: model.n_iter_}
LOSS_AND_BETA: dict[str, Fact] = {"loss": loss_name, "β": lambda model: round(float(model.beta_), 4), **SWEEPS}
GRID_FIT: dict[str, Fact] = {"loss": loss_name, "beta": lambda model: model.beta_}
NO_BOARD = ("loss", "beta", "objective", "solver", "merges", "cold_start")

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "bayesian", "one checkerboard with mixed memberships and priors",
            estimators=("BayesianCoClustering",), data="labels", needs_label=True, unused=NO_BOARD,
            instead="Its memberships are mixed: fit again with fewer --clusters.",
            facts={
                "family": lambda m: m.beliefs_.cells[0].name, "evidence bound": lambda m: round(m.lower_bound_, 1),
                **SWEEPS,
            },
        ),
        Kind(
            "committee", "average of many checkerboards.",
            estimators=("Committee",), data="labels", needs_label=True,
            member="coclustering", unused=("merges", "cold_start"),
            instead="Each member has its own clusters: simplify one checkerboard (--model coclustering).",
            facts={"members": lambda m: len(m.members_)},
        ),
        Kind(
            "cooccurrence", "groups of rows and columns of counts, such as words in documents.",
            "counts", ("CoOccurrenceClustering",), pair="word,document", axes=("row", "column"), simplifies=True,
            unused=("loss", "alphabet", "bounds", "objective", "solver", "merges", "cold_start"),
            one_prediction="Counts predict how likely a pair is", not_by_row="A density", own_theorem=True,
            facts={
                "information, nats": lambda m: round(float(m.information_), 4),
                "share kept": lambda m: f"{100 * m.information_kept_:.1f} %", **SWEEPS,
            },
        ),
        Kind(
            "graph", "groups of nodes with similar links.",
            "graph", ("GraphClustering",), ("objective", "solver", "merges", "cold_start"), pair="from,to",
            axes=("from", "to"), simplifies=True, not_by_row="A graph",
            facts={"loss": lambda m: str(m.loss), "β": lambda m: round(float(m.beta_), 4), **SWEEPS},
        ),
        Kind(
            "coclustering", "one checkerboard that predicts labels, certified on the training rows.",
            estimators=("CoClusteringRegressor", "CoClusteringClassifier"), data="labels", needs_label=True,
            unused=("merges", "cold_start"), simplifies=True,
            fit_facts=GRID_FIT, facts=LOSS_AND_BETA,
        ),
        Kind(
            "joint", "several tables that share an axis, such as ratings and genres.",
            estimators=("JointCoClustering",), data="labels", needs_label=True, has_relations=True,
            unused=("objective", "solver", "merges", "bounds"),
            instead="Its tables share clusters: fit again with fewer --clusters.",
            not_by_row="One table of a joint model",
            facts={"tables": lambda m: "; ".join(" × ".join(one) for one in m.relations_), **SWEEPS},
        ),
        Kind(
            "layered", "sum of checkerboards and averages: the best prediction of numbers and of classes.",
            estimators=("LayeredCoClusteringRegressor", "LayeredCoClusteringClassifier"), data="labels",
            needs_label=True, has_posterior=False,
            unused=NO_BOARD, renamed={"bounds": None},  # they are for its certificate, which speaks of predictions
            instead="Its layers add up: simplify one checkerboard (--model coclustering).",
            facts={"layers": lambda m: len(m.layers_), "noise σ": lambda m: round(float(m.noise_) ** 0.5, 4)},
        ),
        Kind(
            "ranking", "recommendations from purchases or views without ratings.",
            "ranking", ("BasketRanker",), pair="customer,product", axes=("user", "item"),
            unused=(*NO_BOARD, "label", "clusters", "alphabet", "bounds", "holdout"),
            not_by_row="A ranking", own_theorem=True,
            instead="gingham simplify does not take a ranking: fit again with fewer n_groups, in Python.",
        ),
        Kind(
            "survey", "questions with answers of their own: names, scales, measurements.",
            estimators=("SurveyCoClustering",), data="labels", needs_label=True, has_posterior=False,
            unused=(*NO_BOARD, "alphabet", "ordered", "bounds"),
            instead="Its layers add up: fit again with fewer --clusters.",
            facts={
                "questions": lambda m: len(m.questions_.names),
                "statements that are true or false": lambda m: int(m.questions_.n_statements.sum()),
            },
        ),
        Kind(
            "tree", "three or more axes whose clusters merge step by step.",
            estimators=("TreeCoClustering",), data="labels", needs_label=True,
            unused=("objective", "solver", "cold_start"),
            renamed={"n_clusters": "leaves"},
            instead="Its merges are the coarser levels: fit again with fewer --clusters or other --merges.",
            fit_facts=GRID_FIT, facts=LOSS_AND_BETA,
        ),
    )
}  # fmt: skip
# What progressive tests have certified: its members have seen the rows, and it has nothing else to show.
PREDICTOR = Kind(
    "predictor", "", estimators=("ProgressivePredictor",), data="labels", needs_label=True,
)  # fmt: skip
OF_GRAPHS = ("degree_correction", "directed")  # options that mean nothing to other kinds


def kind_named(name: str) -> Kind:
    """The kind that ``--model`` names."""
    if name not in KINDS:
        raise GinghamError(f"--model {name!r} is unknown; choose one of {', '.join(KINDS)}.{suggestion(name, KINDS)}")
    return KINDS[name]


def kind_of(model: object) -> Kind:
    """The kind of a fitted model, by the name of its class."""
    name = type(model).__name__
    for kind in (*KINDS.values(), PREDICTOR):
        if name in kind.estimators:
            return kind
    raise GinghamError(f"The command line does not support {name} models; use them in Python.")
