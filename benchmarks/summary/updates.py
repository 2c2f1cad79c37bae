"""Updates with new rows: how often a change is called proven though none happened; planted ones found.

Tables have two or three planted groups on either side. *Null*: the rows before and the new rows come from one source;
counted are runs in which anything is called proven (at most 5 % are allowed). *Moved*: three items change their group;
counted are those that are found, and false ones beside them. *Split*: half of a group changes its taste. The same
mechanism serves labels in a checkerboard, counts, graphs, rankings, and the summaries of layered models.

*Timeline*: votes of three sessions, each with motions of its own; a tenth of the members are moderates who side with
either group. Nothing changes, or two members change sides after the second session.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, previous, write
from gingham.data.adapt import frame_of
from gingham.summary.timeline import timeline

FIGURES = {"runs with a false change, share": "*/null/share", "planted movers found, share": "*/moved/found"}
ROWS, COLUMNS, MOVERS, SPLIT = 60, 40, 3, 9
RUNS = {"checkerboard": 200, "counts": 200, "graph": 200, "ranking": 200, "layers": 200, "timeline": 200}
SESSIONS, VOTERS, MOTIONS, MODERATES = 3, 30, 80, 3


def groups(n, k, change, rng):
    """The planted groups of n items, and after the change."""
    before = rng.permutation(np.arange(n) % k)
    after = before.copy()
    if change == "moved":
        movers = rng.choice(n, MOVERS, replace=False)
        after[movers] = (after[movers] + 1) % k
    elif change == "split":
        half = np.flatnonzero(before == 0)
        after[half[: len(half) // 2]] = SPLIT
    return before, after


def likes(group, column):
    """Items like the columns of their group; those that split off like all but the columns of the first group."""
    return np.where(group == SPLIT, column > 0, group == column)


def labelled(group, column, rng):
    """Rows (item, column) with a label: 4 or 5 of columns that the item likes, 1 or 2 of others."""
    n = 6000
    u, i = rng.integers(0, ROWS, n), rng.integers(0, COLUMNS, n)
    high = rng.random(n) < np.where(likes(group[u], column[i]), 0.8, 0.2)
    return np.column_stack([u, i]), np.where(high, 4.0, 1.0) + rng.integers(0, 2, n)


def counted(group, column, rng):
    mean = np.where(likes(group[:, None], column), 4.0, 1.0)
    return (rng.poisson(mean),)


def edges(group, column, rng):
    chance = np.where(group[:, None] == group, 0.3, 0.05)
    return (np.column_stack(np.nonzero(np.triu(rng.random((len(group),) * 2) < chance, 1))),)


def taken(group, column, rng):
    u, i = np.nonzero(rng.random((len(group), len(column))) < 0.5)
    return (np.column_stack([u, i])[likes(group[u], column[i]) | (rng.random(len(u)) < 0.15)],)


FAMILIES = {
    "checkerboard": (lambda: gg.CoClusteringRegressor(random_state=0), labelled, ROWS, COLUMNS, 3),
    "counts": (lambda: gg.CoOccurrenceClustering(random_state=0), counted, ROWS, 2 * COLUMNS, 2),
    "graph": (lambda: gg.GraphClustering(random_state=0), edges, 4 * ROWS, COLUMNS, 3),
    "ranking": (lambda: gg.BasketRanker(n_boards=1, n_factors=16, n_groups=2, random_state=0), taken, 90, 120, 2),
    "layers": (lambda: gg.LayeredCoClusteringRegressor(effort="fast", random_state=0), labelled, ROWS, COLUMNS, 3),
}


def run(family, change, seed):
    """The model after an update, and the items that were moved."""
    make, source, n, m, k = FAMILIES[family]
    rng = np.random.default_rng([seed, len(change)])
    before, after = groups(n, k, change, rng)
    column = rng.permutation(np.arange(m) % k)
    model = make().fit(*source(before, column, rng))
    model.update(*source(after, column, rng))
    return model.changes_, np.flatnonzero(before != after)


def over_time(change, seed):
    """The changes in all sessions, and the members who changed sides (after the second one)."""
    rng = np.random.default_rng([seed, len(change), SESSIONS])
    side = rng.permutation(np.arange(VOTERS) % 2)
    members = rng.permutation(VOTERS)
    moderates, movers = members[:MODERATES], members[MODERATES : MODERATES + (2 if change == "moved" else 0)]
    fits = {}
    for session in range(SESSIONS):
        if session == SESSIONS - 1:
            side = np.where(np.isin(np.arange(VOTERS), movers), 1 - side, side)
        u, i = np.nonzero(rng.random((VOTERS, MOTIONS)) < 0.9)
        agrees = np.where(np.isin(u, moderates), 0.5, np.where(side[u] == i % 2, 0.9, 0.15))
        motion = MOTIONS * session + i
        model = gg.CoClusteringClassifier(n_clusters=(2, 4), random_state=0)
        fits[str(session)] = model.fit(
            frame_of({"member": u.tolist(), "motion": motion.tolist()}), (rng.random(len(u)) < agrees).astype(int)
        )
    line = timeline(fits, seed=seed)
    return [period.changes for period in line.periods[1:]], movers


def judged(family, change, seed):
    """Of one run: proven and other differences, movers planted and found, false ones, whether a split is proven."""
    began = time.process_time()
    if family == "timeline":
        steps, moved = over_time(change, seed)
    else:
        changes, moved = run(family, change, seed)
        steps = [changes]
    proven = [one for changes in steps for one in changes.proven]
    side = next(iter(steps[0].matched))
    told = {
        at
        for step, changes in enumerate(steps) if step == len(steps) - 1
        for one in changes.proven if one.kind == "moved" and one.side == side
        for at in one.positions
    }  # fmt: skip
    false = sum(one.kind == "moved" and one.side == side for one in proven) - len(told & set(moved))
    return {
        "proven": len(proven), "others": sum(len(changes.changes) for changes in steps) - len(proven),
        "planted": len(moved), "found": len(told & set(moved)), "false": false,
        "split": any(one.kind in ("split", "born", "moved") for one in proven),
        "cpu_s": time.process_time() - began,
    }  # fmt: skip


def summary(null, moved, split):
    total = {key: sum(one[key] for one in moved) for key in ("planted", "found", "false")}
    false = sum(one["proven"] > 0 for one in null)
    found = {
        "null": {
            "runs": len(null), "with a false change": false, "share": false / len(null),
            "unproven differences per run": float(np.mean([one["others"] for one in null])),
            "cpu_s_per_run": float(np.mean([one["cpu_s"] for one in null])),
        },
        "moved": {"planted": total["planted"], "found": total["found"] / total["planted"], "false": total["false"]},
    }  # fmt: skip
    if split:
        found["split"] = {"runs": len(split), "proven": float(np.mean([one["split"] for one in split]))}
    return found


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default=",".join(RUNS))
        parser.add_argument("--jobs", type=int, default=1, help="runs side by side")

    args = arguments(__doc__ or "", "summary_updates", options)
    warnings.simplefilter("ignore")
    results = previous(args)
    with Parallel(n_jobs=args.jobs) as parallel:
        for family in args.only.split(","):
            n = min(RUNS[family], 5) if args.quick else RUNS[family]
            few = max(n // 10, 2)
            kinds = {"null": n, "moved": few, "split": 0 if family in ("graph", "timeline") else few}
            jobs = [(change, seed) for change, runs in kinds.items() for seed in range(runs)]
            every = parallel(delayed(judged)(family, *job) for job in jobs)
            parts = [[one for one, job in zip(every, jobs) if job[0] == change] for change in kinds]
            results[family] = summary(*parts)
            print(family, results[family], flush=True)
            write(args, {"rows": ROWS, "columns": COLUMNS, "movers": MOVERS}, results)


if __name__ == "__main__":
    main()
