"""Trees over the axes of labelled tuples from a table of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gingham.arrays import Ints
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.base import predicted_by
from gingham.models.questions import Predicted
from gingham.models.tree import KIND

if TYPE_CHECKING:
    from gingham.models.tree.estimator import TreeCoClustering


class TreeWithData(common.TuplesWithModel):
    instead = "Its merges are the coarser levels: fit again with fewer --clusters or other --merges."

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """Of combinations at the roots, which a model file does not list: these rows do."""
        sample = self.model.sample(self.rows.X, self.rows.y, self.rows.weight)
        grid = self.model.posterior_.at_root(sample, named=True)[0]
        return predicted_by(grid, codes, label, getattr(self.model, "cell_moments_", None))


class TreeTables(common.TupleTables):
    kind = KIND
    estimators = ("TreeCoClustering",)
    with_data = TreeWithData
    unused = ("objective", "solver", "cold_start")
    cross_validates = True

    def estimator(self, options: common.FitOptions, labels: common.LabelOptions) -> TreeCoClustering:
        said = {
            "alphabet": labels.alphabet,
            "bounds": labels.bounds,
            "loss": labels.loss,
            "beta": options.beta,
            "merges": parse_merges(options.merges),
            "structure": "auto" if options.merges == "auto" else None,
            "leaves": common.parse_clusters(options.clusters, len(options.axes)),
        }
        return self.made(options, said)

    def facts(self, model: Any) -> common.Facts:
        return {**super().facts(model), "loss": self.loss_name(model), "beta": model.beta_}


def parse_merges(listed: str | None) -> tuple[tuple[int, ...], ...] | None:
    """Merges of a tree from "0,1,6;2,3,6": children, then the number of clusters."""
    if listed is None or listed == "auto":
        return None
    try:
        return tuple(tuple(int(part) for part in merge.split(",")) for merge in listed.split(";") if merge)
    except ValueError:
        raise GinghamError(f"--merges {listed!r} must be whole numbers: --merges '0,1,6;2,3,6', or auto.") from None


TABLES = TreeTables()
