"""Nothing set: planted sizes recovered, MovieLens against a tuned grid; new users folded in against a refit.

    python benchmarks/peers/selection.py --data FOLDER --parts planted,fresh,shapes,auto,fold_in,growth

planted: ten checkerboards of different shapes; clusters found with nothing set but the data. These boards were
looked at while the search was written; "fresh" are twenty others, the same shapes with two other seeds, and "shapes"
ten whose shapes are drawn at random.
auto: MovieLens-100K, u1 … u5: median MAE with nothing set, and of the grid whose size and β have the least
five-fold cross-validated loss within the training part.
best: the same against the best of the grids and β as the test part itself would choose them: what no choice within
the training part can know. ``--pieces`` runs a part of it.
fold_in: 90 users taken out of MovieLens-100K entirely, half their ratings given afterwards; error on the other
half, against a fit that had those ratings from the start. Each of ``--draws`` takes out other users. Beside it the
difference between two such fits with different seeds: a grid ends where its start leads it, so grids are also averaged
over ten seeds.
growth: CPU seconds of one chain of layers on 80,000 ratings of MovieLens-100K and on 800,000 of MovieLens-1M, the
least of three turns each.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, load, previous, write
from gingham.models.layers import Sampler

FIGURES = {
    "planted sizes recovered": "planted/recovered",
    "of": "planted/of",
    "MAE (nothing set)": "summary/mean MAE/auto",
    "(tuned)": "summary/mean MAE/tuned",
    "folded in less refitted": "summary/folded in minus refitted/*/mean",
}
FULL = ["", "--parts best --splits u1,u2,u3"]
# clusters, items, tuples, share of labels replaced at random
SHAPES = [
    ((2, 2), (100, 100), 3000, 0.2),
    ((3, 3), (150, 100), 6000, 0.3),
    ((4, 3), (200, 150), 9000, 0.3),
    ((5, 5), (200, 200), 16000, 0.3),
    ((6, 4), (300, 200), 18000, 0.3),
    ((3, 7), (200, 200), 16000, 0.3),
    ((8, 8), (400, 400), 40000, 0.3),
    ((1, 1), (100, 100), 3000, 0.3),
    ((4, 4), (100, 400), 12000, 0.4),
    ((5, 2), (300, 100), 9000, 0.2),
]
GRIDS = ((13, 6), (20, 20), (30, 30))
BETAS = (1.4, 1.0, 0.7, 0.5)
COMPARED = {
    "folded in minus refitted": "difference",
    "refitted with another seed minus refitted": "refitted_with_another_seed_difference",
}
SECTIONS = ("planted", "fresh boards", "auto", "best", "folded in", "growth")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default="planted,fresh,shapes,auto,fold_in,growth")
    parser.add_argument("--splits", default="u1,u2,u3,u4,u5")
    parser.add_argument("--draws", default="0,1,2,3,4,5,6,7,8,9", help="of the users that are taken out")
    parser.add_argument("--pieces", default="auto,13x6,20x20,30x30", help="of the part 'best'")


def board(clusters: Any, items: Any, n: int, flip: float, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    groups = [rng.integers(m, size=size) for m, size in zip(clusters, items)]
    while True:  # rows that agree everywhere would be one cluster
        table = rng.integers(1, 6, clusters)
        if len(np.unique(table, axis=0)) == clusters[0] and len(np.unique(table, axis=1).T) == clusters[1]:
            break
    X = np.column_stack([rng.integers(size, size=n) for size in items])
    y = table[groups[0][X[:, 0]], groups[1][X[:, 1]]]
    return X, np.where(rng.random(n) < flip, rng.integers(1, 6, n), y)


def random_shapes(seed: int) -> list[Any]:
    """Ten shapes: 2 to 8 clusters a side, 40 to 60 items a cluster, 20 to 40 tuples an item, 20 to 40 % replaced."""
    rng = np.random.default_rng(seed)
    shapes = []
    for _ in range(10):
        clusters = tuple(int(m) for m in rng.integers(2, 9, 2))
        items = tuple(int(m * rng.integers(40, 61)) for m in clusters)
        shapes.append((clusters, items, int(sum(items) * rng.integers(20, 41)), float(rng.uniform(0.2, 0.4))))
    return shapes


def planted(seed: int, boards: int, shapes: list[Any] = SHAPES) -> dict[str, Any]:
    rows = []
    for clusters, items, n, flip in shapes:
        model = gg.CoClusteringRegressor(random_state=seed).fit(*board(clusters, items, n, flip, boards))
        hit = all(abs(a - b) <= 1 for a, b in zip(clusters, model.n_clusters_))
        rows.append({"planted": clusters, "items": items, "tuples": n, "replaced": flip, "found": model.n_clusters_})
        rows[-1] |= {"within_one": hit, "beta": model.beta_}
    return {"boards": rows, "recovered": sum(row["within_one"] for row in rows), "of": len(rows)}


def auto(data: dict[str, Any], split: str, seed: int) -> dict[str, Any]:
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"]
    train, test = data[f"{split}_base_idx"], data[f"{split}_test_idx"]
    error = lambda m: float(np.mean(np.abs(m.predict(X[test], rule="median") - y[test])))  # noqa: E731
    found: dict[str, Any] = {}
    with clock(found, "auto_"):
        model = gg.CoClusteringRegressor(random_state=seed).fit(X[train], y[train])
    found |= {"auto": error(model), "n_clusters": model.n_clusters_, "beta": model.beta_}
    best = None
    with clock(found, "tuned_"):
        for size in GRIDS:
            grid = gg.CoClusteringRegressor(size, random_state=seed)
            path = gg.beta_path(grid, X[train], y[train], BETAS, cv=5, delta=0)
            point = min(path.points, key=lambda p: p.cv_prediction)
            if best is None or point.cv_prediction < best[0]:
                best = (point.cv_prediction, size, point.beta)
        tuned = gg.CoClusteringRegressor(best[1], beta=best[2], random_state=seed).fit(X[train], y[train])
    return found | {"tuned": error(tuned), "tuned_n_clusters": best[1], "tuned_beta": best[2]}


def best(data: dict[str, Any], split: str, piece: str, seed: int) -> dict[str, float]:
    """Median MAE on the test part: with nothing set, or of one grid at each β."""
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"]
    train, test = data[f"{split}_base_idx"], data[f"{split}_test_idx"]
    error = lambda m: float(np.mean(np.abs(m.predict(X[test], rule="median") - y[test])))  # noqa: E731
    if piece == "auto":
        return {"auto": error(gg.CoClusteringRegressor(random_state=seed).fit(X[train], y[train]))}
    size = tuple(int(m) for m in piece.split("x"))
    found = {}
    for beta in BETAS:
        model = gg.CoClusteringRegressor(size, beta=beta, random_state=seed, max_iter=60).fit(X[train], y[train])
        found[f"{piece}, β {beta:g}"] = error(model)
    return found


def fold_in(data: dict[str, Any], draw: int, seed: int, few: bool = False) -> dict[str, Any]:
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
    rng = np.random.default_rng(draw)
    users = rng.choice(943, 90, replace=False)
    out = np.flatnonzero(np.isin(X[:, 0], users))
    rest = np.flatnonzero(~np.isin(X[:, 0], users))
    given = out[rng.random(len(out)) < 0.5]
    test = np.setdiff1d(out, given)
    both = np.concatenate([rest, given])
    found: dict[str, Any] = {"users": len(users), "given": len(given), "test": len(test)}
    stars = range(1, 6)
    grid = gg.CoClusteringRegressor(20, beta=0.7, alphabet=stars, random_state=seed)
    models: dict[str, tuple[Any, tuple[str, ...]]] = {
        "grid 20×20": (grid, ("median",)),
        "committee of ten grids 30×30": (
            gg.Committee(clone(grid).set_params(n_clusters=30, max_iter=30), 10, random_state=seed), ("median",)
        ),
        "layers": (gg.LayeredCoClusteringRegressor(10, 8, alphabet=stars, random_state=seed), ("label", "mean")),
    }  # fmt: skip
    for name, (model, rules) in list(models.items())[: 1 if few else None]:
        old, new = clone(model).fit(X[rest], y[rest]), clone(model).fit(X[both], y[both])
        other = clone(model).set_params(random_state=seed + 1).fit(X[both], y[both])
        with clock(found, f"{name}, fold_in_"):
            old.fold_in(X[given], y[given])
        for rule in rules:
            folded, again, reseeded = (
                float(np.mean(np.abs(m.predict(X[test], rule=rule) - y[test]))) for m in (old, new, other)
            )
            found[f"{name}, {rule}"] = {"folded_in": folded, "refitted": again, "difference": folded - again}
            found[f"{name}, {rule}"]["refitted_with_another_seed_difference"] = reseeded - again
    if few:
        return found
    errors = []
    for start in range(seed, seed + 10):
        model = clone(grid).set_params(random_state=start)
        old, new = clone(model).fit(X[rest], y[rest]).fold_in(X[given], y[given]), model.fit(X[both], y[both])
        errors.append([np.mean(np.abs(m.predict(X[test], rule="median") - y[test])) for m in (old, new)])
    folded, again = (float(each) for each in np.mean(errors, axis=0))
    found["grid 20×20, median, mean of ten seeds"] = {
        "folded_in": folded, "refitted": again, "difference": folded - again
    }  # fmt: skip
    return found


def growth(folder: Any, seed: int) -> dict[str, float]:
    """Seconds of one member, the sets in turn, so that both meet the same machine."""
    sets = {}
    for name, file in (("80,000 ratings", "ml100k.npz"), ("800,000 ratings", "ml1m.npz")):
        data = load(folder, file)
        kept = np.random.default_rng(seed).permutation(len(data["vals"]))[: 8 * len(data["vals"]) // 10]
        sets[name] = (np.column_stack([data["rows"], data["cols"]])[kept], data["vals"][kept].astype(float))
    model = gg.LayeredCoClusteringRegressor(
        10, 8, sampler=Sampler(n_chains=1, n_sweeps=15, burn_in=5), random_state=seed
    )
    seconds: dict[str, list[float]] = {name: [] for name in sets}
    for name, (X, y) in 3 * list(sets.items()):
        found: dict[str, float] = {}
        with clock(found):
            clone(model).fit(X, y)
        seconds[name].append(found["cpu_s"])
    least = {name: min(each) for name, each in seconds.items()}
    small, large = (least[name] / len(y) for name, (_, y) in sets.items())
    return {**least, "seconds a rating, large over small": large / small}


def jobs(args: argparse.Namespace) -> Iterator[tuple[tuple[str, ...], Callable[[], Any]]]:
    """Where each result goes in the file, and how it is found."""
    parts, splits, seed = args.parts.split(","), args.splits.split(","), args.seed
    if "planted" in parts:
        yield ("planted",), lambda: planted(seed, 1, SHAPES[:3] if args.quick else SHAPES)
    if "fresh" in parts:
        for boards in (101, 102):
            yield ("fresh boards", f"seed {boards}"), partial(planted, seed, boards)
    if "shapes" in parts:
        yield ("fresh boards", "random shapes"), lambda: planted(seed, 103, random_shapes(103))
    if "growth" in parts:
        yield ("growth",), lambda: growth(args.data, seed)
    if not {"auto", "best", "fold_in"} & set(parts):
        return
    data = load(args.data, "ml100k.npz")
    if "auto" in parts:
        yield from ((("auto", split), partial(auto, data, split, seed)) for split in splits)
    if "best" in parts:
        for split in splits:
            for piece in args.pieces.split(","):
                yield ("best", split, piece), partial(best, data, split, piece, seed)
    if "fold_in" in parts:
        yield from (
            (("folded in", f"users {draw}"), partial(fold_in, data, int(draw), seed, args.quick))
            for draw in args.draws.split(",")
        )


def summary(results: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "auto" in results:
        rows = results["auto"].values()
        found["mean MAE"] = {key: float(np.mean([row[key] for row in rows])) for key in ("auto", "tuned")}
        found["largest auto minus tuned"] = max(row["auto"] - row["tuned"] for row in rows)
    if "fresh boards" in results:
        rows = results["fresh boards"].values()
        found["fresh boards"] = {key: sum(row[key] for row in rows) for key in ("recovered", "of")}
    found |= {key: folded_in(results["folded in"], name) for key, name in COMPARED.items() if "folded in" in results}
    return found


def folded_in(draws: dict[str, Any], kind: str) -> dict[str, Any]:
    """Of each model: the mean difference over the draws of users, its standard error, the worst draw."""
    each: dict[str, list[float]] = {}
    for draw in draws.values():
        for name, row in draw.items():
            if isinstance(row, dict) and kind in row:
                each.setdefault(name, []).append(row[kind])
    return {
        name: {
            "mean": float(np.mean(differences)),
            "standard_error": float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
            if differences[1:]
            else None,
            "worst": max(differences),
            "above_0.01": sum(d > 0.01 for d in differences),
            "draws": len(differences),
        }
        for name, differences in each.items()
    }


def main() -> None:
    args = arguments(__doc__ or "", "peers_selection", options)
    if args.quick:
        args.parts, args.draws = "planted,fold_in", "0"
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    for path, find in jobs(args):
        found = find()
        print(*path, json.dumps(found, ensure_ascii=False), flush=True)
        results = previous(args)  # read again: another part of the run may have written in the meantime
        here = results
        for key in path[:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = found
        results = {key: value for key, value in results.items() if key in SECTIONS}
        results["summary"] = summary(results)
        write(args, {"grids": GRIDS, "betas": BETAS, "shapes": SHAPES}, results)


if __name__ == "__main__":
    main()
