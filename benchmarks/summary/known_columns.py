"""Known columns beside groups that were found: Coat with what is known of shoppers and coats, and 50 shuffles of it.

`CoClusteringRegressor` with nothing set; the summary offers a partition by two columns where it predicts clearly
better. Shuffled: the rows of both tables are permuted, so that no column says anything; none is to be offered.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write
from gingham.summary.item_tables import properties_of
from gingham.summary.known_columns import best_known

DRAWS = 50
FIGURES = {"Coat, standard errors": "coat/standard errors", "shuffled, nothing offered": "shuffled/not offered"}


def about(side: str, flags: np.ndarray, names: np.ndarray) -> pl.DataFrame:
    """A column for each property, from one flag for each of its values."""
    columns: dict[str, list[int]] = {}
    for at, name in enumerate(names.tolist()):
        columns.setdefault(str(name).split(":")[0], []).append(at)
    values = np.array([str(name).split(":")[-1] for name in names.tolist()])
    found = {name: values[own][flags[:, own].argmax(axis=1)] for name, own in columns.items() if len(own) > 1}
    return pl.DataFrame({side: np.arange(len(flags)), **found})


def main() -> None:
    args = arguments(__doc__, "summary_known_columns")
    data = load(args.data, "coat.npz")
    rows, columns = np.nonzero(data["self_selected"])
    X, y = pl.DataFrame({"user": rows, "item": columns}), data["self_selected"][rows, columns].astype(np.float64)
    info = {side: about(side, data[f"{side}_features"], data[f"{side}_feature_names"]) for side in ("user", "item")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        model = gg.CoClusteringRegressor(alphabet=range(1, 6), random_state=args.seed).fit(X, y)
        summary = gg.summarize(model, item_info=info)
    known = summary.known
    results: dict[str, object] = {
        "coat": None if known is None else {
            "verdict": summary.verdict, "text": known.text, "gain": known.gain,
            "standard errors": known.gain / known.error, "candidates": known.n_candidates,
        }
    }  # fmt: skip
    silent, draws = 0, 3 if args.quick else DRAWS
    observed = model._observed()
    for draw in range(draws):
        rng = np.random.default_rng([args.seed, draw])
        partitions = {
            at: {name: rng.permutation(own) for name, own in properties_of(info[mode.name], mode).partitions.items()}
            for at, mode in enumerate(observed.modes)
        }
        silent += best_known(observed, partitions, args.seed, 0.0, 0.0, None) is None
    results["shuffled"] = {"draws": draws, "not offered": silent}
    print(results, flush=True)
    write(args, settings={"draws": draws}, results=results)


if __name__ == "__main__":
    main()
