"""P0 Figures 3-6: bound and test error against β at 13×6, 50×50 and 283×283 clusters, MovieLens-100K, u1-u5.

Every fit is one record of the JSON file, so an interrupted run goes on where it stopped. β (and the start)
of the headline row are chosen on a part of the training ratings that the inner fits do not see. Which starts and β
were offered to that choice (no spectral start, random starts alone at 283×283) was settled after looking at u1 and u3.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, load, previous, write
from gingham.cells import Absolute
from gingham.certificates.bounds import LossDistribution, log_wealth, theorem7
from gingham.certificates.prices import of_posterior
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.fitting.loop import Restart, Solution, best_of
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant, Down
from gingham.fitting.starts import make_start

LONG = "its inner folds take over half an hour"
FIGURES = {
    "test MAE of Gibbs": "summary/*/chosen_inside_training/test_gibbs",
    "bound (18)": "summary/*/chosen_inside_training/bound_18",
    "log-wealth": "summary/*/chosen_inside_training/log_wealth",
}
STARS = Alphabet.of([1, 2, 3, 4, 5], given=True)
SIZES = {"13x6": (13, 6), "50x50": (50, 50), "283x283": (283, 283)}
N_INIT = {"13x6": 8, "50x50": 4, "283x283": 1}  # random starts; the lowest objective is kept
BETAS = {
    "13x6": (0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0),
    "50x50": (0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0),
    "283x283": (0.3, 0.5, 0.7, 1.0, 1.4),
}
INNER_FOLDS = {"13x6": 3, "50x50": 3, "283x283": 1}
# What the text of P0 §5.2 states of its Figures 3-6.
PAPER = {
    "13x6": {"test_gibbs": 0.72, "beta": ">= 0.7", "information": [[1.1, 2.1], [0.8, 1.5]], "bound": "about 1.25"},
    "50x50": {"test_gibbs": 0.72, "beta": "0.5-1.0", "information": [[1.1, 2.2], [0.8, 1.7]]},
    "283x283": {"test_gibbs": "slightly below 0.72", "beta": 0.5, "information": [1.1, 0.8]},
    "train_gibbs": {"best co-clustering": 0.67, "one cluster": 0.89},
}


def fit(sample: Sample, size: str, start: str, beta: float, seed: int):
    problem = Problem.grid(sample, Absolute(STARS), beta)
    rng = np.random.default_rng(seed)
    n_init = N_INIT[size] if start == "random" else 1
    schedule = Constant() if start == "random" else Down()
    solver = Projection(schedule, tol=1e-6, max_iter=120)

    def solve(restart: Restart) -> Solution:
        return solver.solve(problem, make_start(start, problem, SIZES[size], restart.rng), restart.report)

    return best_of(solve, n_init, rng, max_iter=solver.max_iter)


def measure(posterior, sample: Sample, held: tuple[np.ndarray, ...]) -> dict[str, float]:
    """Errors on held-out ratings (unseen users and movies included) and the bounds of the training sample."""
    *items, labels = held
    codes = [mode.encode(column) for mode, column in zip(sample.modes, items)]
    distribution = posterior.predict_distribution(codes)
    law = posterior.loss_law(sample)
    scaled = LossDistribution.of(law.values / 4, law.weights)
    assigns = {"user": posterior.assign[0], "movie": posterior.assign[1]}
    prices = {k: of_posterior(assigns, posterior.answers[0], 5, kind=k).total for k in ("papers", "exact")}
    n = int(sample.n_observations)
    return {
        "test_gibbs": float((distribution * np.abs(STARS.numbers - labels[:, None])).sum(axis=1).mean()),
        "test_median": float(np.abs(posterior.predict(codes, "median") - labels).mean()),
        "train_gibbs": law.mean,
        "information": list(posterior.information),
        "bound_18": 4 * theorem7(scaled, prices["papers"], n, 0.05).value,
        "log_wealth": 4 * log_wealth(scaled, prices["exact"], n, 0.05).value,
    }


def main() -> None:
    args = arguments(
        __doc__ or "",
        "movielens_grids",
        lambda p: p.add_argument("--seconds", type=float, default=1e9, help="stop after so long; run again to go on"),
    )
    d = load(args.data, "ml100k.npz")
    deadline = time.time() + args.seconds
    records = previous(args).get("records", [])
    done = {(r["task"], r["size"], r["split"], r["start"], r["beta"]): r for r in records}
    splits, sizes = (1, 2, 3, 4, 5), list(SIZES)
    if args.quick:
        splits, sizes = (1,), ["13x6"]
        BETAS["13x6"], N_INIT["13x6"], INNER_FOLDS["13x6"] = (0.5, 1.0), 1, 1

    def run(task: str, size: str, split: int, start: str, beta: float, parts) -> dict:
        key = (task, size, split, start, beta)
        if key not in done:
            if time.time() > deadline:
                save()
                raise SystemExit(f"Time is up after {len(done)} fits; run again to go on.")
            began = time.process_time()
            errors = []
            for train, held in parts():
                sample = Sample.of([d["rows"][train], d["cols"][train]], d["vals"][train], alphabet=STARS)
                solution = fit(sample, size, start, beta, args.seed)
                errors.append(measure(solution.posterior, sample, (d["rows"][held], d["cols"][held], d["vals"][held])))
            mean = {k: np.mean([e[k] for e in errors], axis=0).tolist() for k in errors[0]}
            done[key] = {"task": task, "size": size, "split": split, "start": start, "beta": beta, **mean}
            done[key]["cpu_s"] = round(time.process_time() - began, 2)
            print(task, size, f"u{split}", start, beta, f"gibbs {mean['test_gibbs']:.4f}", flush=True)
            save()
        return done[key]

    def save() -> None:
        settings = {"n_init": N_INIT, "betas": BETAS, "inner_folds": INNER_FOLDS, "delta": 0.05, "splits": splits}
        write(args, settings, {"summary": summary(list(done.values())), "paper": PAPER, "records": list(done.values())})

    for size in sizes:
        starts = ("random",) if size == "283x283" else ("random", "means")
        for split in splits:
            base, test = d[f"u{split}_base_idx"], d[f"u{split}_test_idx"]
            folds = np.random.default_rng(args.seed + split).integers(0, 5, len(base))
            inner = [(base[folds != f], base[folds == f]) for f in range(INNER_FOLDS[size])]
            for start in starts:
                for beta in BETAS[size]:
                    run("inner", size, split, start, beta, lambda parts=inner: parts)
            best = min(
                (done["inner", size, split, start, beta] for start in starts for beta in BETAS[size]),
                key=lambda r: r["test_gibbs"],
            )
            run("test", size, split, best["start"], best["beta"], lambda parts=[(base, test)]: parts)
    for size in sizes:  # the figures: every β, from random starts as in the paper
        for split in splits:
            base, test = d[f"u{split}_base_idx"], d[f"u{split}_test_idx"]
            for beta in BETAS[size]:
                run("test", size, split, "random", beta, lambda parts=[(base, test)]: parts)
    save()
    plot(args, list(done.values()))


def summary(records: list[dict]) -> dict:
    """Mean over the splits: the row chosen inside the training parts, and every β of the figures."""
    out: dict = {}
    for size in SIZES:
        tests = [r for r in records if r["task"] == "test" and r["size"] == size]
        chosen = []
        for split in sorted({r["split"] for r in tests}):
            inner = [r for r in records if r["task"] == "inner" and r["size"] == size and r["split"] == split]
            best = min(inner, key=lambda r: r["test_gibbs"])
            chosen += [r for r in tests if (r["split"], r["start"], r["beta"]) == (split, best["start"], best["beta"])]
        figures = {}
        for beta in BETAS[size]:
            rows = [r for r in tests if r["beta"] == beta and r["start"] == "random"]
            if rows:
                figures[str(beta)] = average(rows)
        out[size] = {
            "chosen_inside_training": average(chosen) if chosen else None,
            "choices": [[r["split"], r["start"], r["beta"], r["test_gibbs"]] for r in chosen],
            "by_beta": figures,
        }
    return out


def average(rows: list[dict]) -> dict:
    keys = ("test_gibbs", "test_median", "train_gibbs", "bound_18", "log_wealth", "information")
    return {"n_splits": len(rows), **{k: np.mean([r[k] for r in rows], axis=0).tolist() for k in keys}}


def plot(args, records: list[dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = summary(records)
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for ax, size in zip(axes, SIZES):
        rows = results[size]["by_beta"]
        betas = [float(b) for b in rows]
        ax.plot(betas, [rows[b]["bound_18"] for b in rows], "s-", color="#b03a2e", label="bound (18)")
        ax.plot(betas, [rows[b]["log_wealth"] for b in rows], "^-", color="#1f618d", label="log-wealth")
        ax.plot(betas, [rows[b]["test_gibbs"] for b in rows], "o-", color="#1e8449", label="test MAE (Gibbs)")
        ax.set(xscale="log", xlabel="β", title=f"{size.replace('x', '×')} clusters")
        ax.set_ylim(0.6, 4.0 if size == "283x283" else 2.0)
        axes[3].plot(betas, [rows[b]["information"][0] for b in rows], "o-", label=f"users, {size}")
        axes[3].plot(betas, [rows[b]["information"][1] for b in rows], "s--", label=f"movies, {size}")
    axes[0].set_ylabel("stars")
    axes[0].legend(frameon=False, fontsize=8)
    axes[3].set(xscale="log", xlabel="β", title="information Ī (nats)")
    axes[3].legend(frameon=False, fontsize=7)
    for ax in axes:
        ax.set_xticks([0.2, 0.5, 1.0, 2.0], labels=["0.2", "0.5", "1", "2"])
        ax.xaxis.set_minor_locator(plt.NullLocator())
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(args.out.with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
