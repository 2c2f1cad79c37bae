"""The kinds of models that the command line knows, each by one record; reading them imports no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from gingham.errors import GinghamError

Fact = Callable[[Any], object]


@dataclass(frozen=True)
class Kind:
    """What one kind of model wants of a table, and which options and commands have a use for it.

    Attributes
    ----------
    name, about, example : str
        What ``--model`` calls it, what it is for, and a command that fits it.
    data : str
        What a table is to it: the module of `gingham.cli.tables` that reads it so.
    estimators : tuple of str
        Public classes of gingham; of two for labels, the second is for labels that are names.
    unused : tuple of str
        Options of ``gingham fit`` that are refused.
    """

    name: str
    about: str
    example: str
    data: str
    estimators: tuple[str, ...]
    unused: tuple[str, ...] = ()
    pair: str = ""  # an example of --axes, where they are two
    needs_label: bool = False
    numbers_only: bool = False  # of labels
    has_relations: bool = False  # whether further tables are taken
    one_size: bool = False  # whether --clusters is one number, whatever the axes are
    renamed: Mapping[str, str | None] = field(default_factory=dict)  # options → parameters; None: not a parameter
    member: str = ""  # the kind of its members
    no_path: str = ""  # why there is no path of β; empty where there is one
    cross_validates: bool = False  # whether paths of β are
    no_clusters: str = ""  # why there are none to list
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
            "bayesian", "one checkerboard with mixed memberships and priors.",
            "gingham fit ratings.csv --model bayesian --axes user,movie --label rating",
            estimators=("BayesianCoClustering",), data="labels", needs_label=True, unused=NO_BOARD,
            no_path="Bayesian co-clustering has no β: its concentrations are validated by gingham fit.",
            instead="Its memberships are mixed: fit again with fewer --clusters.",
            facts={"family": lambda m: m.family_, "evidence bound": lambda m: round(m.elbo_, 1), **SWEEPS},
        ),
        Kind(
            "committee", "the average of many checkerboards; labels and probabilities.",
            "gingham fit ratings.csv --model committee --axes user,movie --label rating",
            estimators=("Committee",), data="labels", needs_label=True,
            member="coclustering", unused=("merges", "cold_start"),
            no_path="A committee shares the β of its members: look at --model coclustering.",
            no_clusters="Every member of a committee has clusters of its own; list those of --model coclustering.",
            instead="Every member has clusters of its own: simplify one checkerboard (--model coclustering).",
            facts={"members": lambda m: len(m.members_)},
        ),
        Kind(
            "cooccurrence", "groups of both sides by how often they occur together: words, purchases.",
            "gingham fit counts.csv --model cooccurrence --axes document,word --weight n",
            "counts", ("CoOccurrenceClustering",), pair="word,document", simplifies=True,
            unused=("loss", "alphabet", "bounds", "objective", "solver", "merges", "cold_start"),
            one_prediction="Counts predict how likely a pair is", not_by_row="A density", own_theorem=True,
            facts={
                "information, nats": lambda m: round(float(m.information_), 4),
                "share kept": lambda m: f"{100 * m.information_kept_:.1f} %", **SWEEPS,
            },
        ),
        Kind(
            "information", "clusters of instances that tell about features not seen yet.",
            "gingham fit answers.csv --model information --axes person,question --label answer --holdout .3",
            "features", ("InformationClustering",), (*NO_BOARD, "alphabet", "bounds"), pair="patient,symptom",
            no_path="Clusters of features have no β: only their number is chosen (--clusters).",
            one_prediction="Clusters of instances predict the commonest value",
            not_by_row="A set of clusters", own_theorem=True,
            facts={
                "information, nats per feature": lambda m: round(float(m.observed_information_), 4),
                "of shuffled clusters": lambda m: round(float(m.chance_information_), 4), **SWEEPS,
            },
        ),
        Kind(
            "graph", "groups of nodes by whom they are linked with.",
            "gingham fit edges.csv --model graph --axes from,to",
            "graph", ("GraphClustering",), ("objective", "solver", "merges", "cold_start"), pair="from,to",
            simplifies=True, not_by_row="A graph",
            facts={"loss": lambda m: str(m.loss), "β": lambda m: round(float(m.beta_), 4), **SWEEPS},
        ),
        Kind(
            "coclustering", "one checkerboard that predicts labels; guarantees for the rows it learned from.",
            "gingham fit votes.csv --model coclustering --axes member,bill --label vote",
            estimators=("CoClusteringRegressor", "CoClusteringClassifier"), data="labels", needs_label=True,
            unused=("merges", "cold_start"), cross_validates=True, simplifies=True,
            fit_facts=GRID_FIT, facts=LOSS_AND_BETA,
        ),
        Kind(
            "joint", "several tables that share a side: ratings and genres.",
            "gingham fit ratings.csv --model joint --axes user,movie --label rating -r movie,genre=has:genres.csv",
            estimators=("JointCoClustering",), data="labels", needs_label=True, has_relations=True,
            unused=("objective", "solver", "merges", "bounds"),
            no_path="Every table of a joint model has its own β; set them in Python (beta={relation: …}).",
            instead="Its tables share clusters: fit again with fewer --clusters.",
            not_by_row="One table of a joint model",
            facts={"tables": lambda m: "; ".join(" × ".join(one) for one in m.relations_), **SWEEPS},
        ),
        Kind(
            "layered", "checkerboards and averages that add up; the best prediction of numbers.",
            "gingham fit ratings.csv --model layered --axes user,movie --label rating",
            estimators=("LayeredCoClusteringRegressor",), data="labels", needs_label=True,
            numbers_only=True, has_posterior=False,
            unused=NO_BOARD, renamed={"bounds": None},  # they are for its certificate, which speaks of predictions
            no_path="Layers have no β: their noise is measured, not chosen.",
            instead="Its layers add up: simplify one checkerboard (--model coclustering).",
            facts={"layers": lambda m: len(m.layers_), "noise σ": lambda m: round(float(m.noise_) ** 0.5, 4)},
        ),
        Kind(
            "ranking", "what each one wants next, from who took what.",
            "gingham fit purchases.csv --model ranking --axes customer,product",
            "ranking", ("BasketRanker",), pair="customer,product",
            unused=(*NO_BOARD, "label", "clusters", "alphabet", "bounds", "holdout"),
            no_path="A ranking has no β: gingham fit chooses its settings on items that it hides from itself.",
            instead="gingham simplify and certify do not take a ranking: fit again with fewer n_groups, in Python.",
        ),
        Kind(
            "tree", "three sides or more, whose clusters merge step by step.",
            "gingham fit table.csv --model tree --axes a,b,c,d --label y --merges '0,1,3;2,3,3'",
            estimators=("TreeCoClustering",), data="labels", needs_label=True,
            unused=("objective", "solver", "cold_start"),
            renamed={"n_clusters": "leaves"}, cross_validates=True,
            instead="Its merges are the coarser levels: fit again with fewer --clusters or other --merges.",
            fit_facts=GRID_FIT, facts=LOSS_AND_BETA,
        ),
        Kind(
            "pairwise", "what several views of the same objects have in common.",
            "gingham fit measurements.csv --model pairwise --axes 'x1,x2,x3;y1,y2'",
            "views", ("PairwiseClusterAnalysis", "KernelCCA"), (*NO_BOARD, "alphabet", "bounds"), one_size=True,
            no_path="Views have no β: gingham fit chooses ridge and components on objects set aside.",
            instead="Components come in the order of their strength: fit again with fewer --clusters.",
            one_prediction="Views predict a cluster and scores", not_by_row="A set of views", own_theorem=True,
            facts={
                "views": lambda m: len(m.ridge_), "components": lambda m: m.n_components_,
                "ridge": lambda m: ", ".join(f"{r:g}" for r in m.ridge_),
                "correlation": lambda m: round(float(sum(m.correlations_)) / len(m.correlations_), 4),
            },
        ),
    )
}  # fmt: skip
# What progressive tests have certified: its members have seen the rows, and it has nothing else to show.
PREDICTOR = Kind(
    "predictor", "", "", estimators=("ProgressivePredictor",), data="labels", needs_label=True,
    no_clusters="Every member of this predictor has clusters of its own; list those of a single model.",
)  # fmt: skip
OF_GRAPHS = ("degree_correction", "directed")  # options that mean nothing to other kinds


def kind_named(name: str) -> Kind:
    """The kind that ``--model`` names."""
    if name not in KINDS:
        raise GinghamError(f"--model {name!r} is unknown; choose one of {', '.join(KINDS)}.")
    return KINDS[name]


def kind_of(model: object) -> Kind:
    """The kind of a fitted model, by the name of its class."""
    name = type(model).__name__
    for kind in (*KINDS.values(), PREDICTOR):
        if name in kind.estimators:
            return kind
    raise GinghamError(f"The command line does not know {name} models; use them in Python.")
