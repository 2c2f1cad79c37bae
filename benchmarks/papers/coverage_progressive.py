"""Does progressive validation keep its promise? Adversarial order, adversarial members, the worst time to stop.

Streams: an adversary who knows the truth chooses the expected loss of the next test from everything that happened, and
stops when it hurts. Tables: rows sorted by how
easy they are to predict go through ``certify_progressive`` with predictors that learn too
closely, pick the luckiest of many, or get worse on purpose, for a convex loss (the members' mean is covered) and one
that is not (a drawn member). A run counts as failed when the true loss lies above the certificate, which it may in a
share δ = 5 % of the runs. Bounds with a mistake run along and must be caught.

    python benchmarks/papers/coverage_progressive.py            # 4000 runs a case
"""

from __future__ import annotations

import sys
from math import log
from pathlib import Path

import numpy as np
from scipy.stats import beta, binom

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham import certify_progressive
from gingham.certificates.progressive import Progressive, progressive_bound

FIGURES = {
    "sound, most failures": "summary/sound/rate",
    "broken, fewest failures": "summary/broken/rate",
}
DELTA = 0.05
LENGTH = 400
ITEMS = (12, 10)
STARS = np.arange(1, 6)


def summary(failures: int, runs: int) -> dict[str, float]:
    """With the 99.9 % upper limit of Clopper and Pearson."""
    upper = float(beta.ppf(0.999, failures + 1, runs - failures)) if failures < runs else 1.0
    return {"failures": int(failures), "runs": runs, "rate": failures / runs, "upper": upper}


def allowed(runs: int, delta: float = DELTA) -> int:
    """The number of failures that a bound failing with probability δ exceeds once in a thousand."""
    return int(binom.ppf(0.999, runs, delta))


# streams


def constant(wealth: np.ndarray, seen: np.ndarray, nu: float, t: int) -> np.ndarray:
    return np.full(len(wealth), 0.3)


def switching(wealth: np.ndarray, seen: np.ndarray, nu: float, t: int) -> np.ndarray:
    """Bad predictors while things went well, good ones to recover."""
    return np.where(seen <= 0.35 * max(t, 1), 0.6, 0.05)


def bold(wealth: np.ndarray, seen: np.ndarray, nu: float, t: int) -> np.ndarray:
    """The loss at which one success more brings the gambler's wealth to 1/δ, as far as losses reach."""
    return np.clip(nu * (1 - np.exp(wealth - log(1 / DELTA) - 1e-6)), 0.0, 0.97)


def timid(wealth: np.ndarray, seen: np.ndarray, nu: float, t: int) -> np.ndarray:
    """Many small steps: rare losses while behind, frequent ones while ahead."""
    return np.where(wealth > 0, 0.9, 0.02)


ADVERSARIES = {"constant": constant, "switching": switching, "bold": bold, "timid": timid}


def streams(runs: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Adversary and ν → sound and broken bounds, failures at the worst time."""
    out = {}
    grid = 1.0 + np.geomspace(1e-3, 1e2, 40)
    for name, choose in ADVERSARIES.items():
        for nu in (1.05, 2.0, 8.0):
            rng = np.random.default_rng(seed)
            logs, wealth, seen, risk = (np.zeros(runs) for _ in range(4))
            hindsight = np.zeros((runs, len(grid)))
            failed = {key: np.zeros(runs, bool) for key in ("progressive", "broken: no δ", "broken: ν of hindsight")}
            for t in range(LENGTH):
                expected = choose(wealth, seen, nu, t)
                loss = (rng.random(runs) < expected).astype(float)
                logs += np.log1p(-loss / nu)
                wealth += np.log((nu - loss) / (nu - expected))
                seen, risk = seen + loss, risk + expected
                hindsight += np.log(grid - loss[:, None])
                n, truth = t + 1, risk / (t + 1) - 1e-9
                price = log(1 / DELTA)
                failed["progressive"] |= -nu * np.expm1((logs - price) / n) < truth
                failed["broken: no δ"] |= -nu * np.expm1(logs / n) < truth
                failed["broken: ν of hindsight"] |= (grid - np.exp((hindsight - price) / n)).min(axis=1) < truth
            check = progressive_bound(float(logs[0]), LENGTH, nu, price)  # the library's own formula
            if not np.isclose(check, min(1.0, -nu * np.expm1((logs[0] - price) / LENGTH))):
                raise SystemExit("The simulation and the library disagree.")
            out[f"{name}, ν = {nu:g}"] = {key: summary(int(value.sum()), runs) for key, value in failed.items()}
    return out


# tables


class World:
    """Pairs of items, all equally likely, whose labels follow a known law."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.law = rng.dirichlet(0.4 * np.ones(len(STARS)), ITEMS).reshape(-1, len(STARS))
        self.pairs = np.array([(i, j) for i in range(ITEMS[0]) for j in range(ITEMS[1])])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """n rows, sorted so that those that are easy to predict come last: nobody should take them as they stand."""
        at = rng.integers(len(self.pairs), size=n)
        u = rng.random((n, 1))
        y = STARS[np.minimum((np.cumsum(self.law[at], axis=1) < u).sum(axis=1), len(STARS) - 1)]
        order = np.argsort(-np.abs(y - 3), kind="stable")
        return self.pairs[at[order]], y[order]

    def loss(self, guesses: np.ndarray, convex: bool) -> float:
        """True expected loss of predictions for all pairs."""
        each = np.abs(STARS - guesses[:, None]) if convex else (guesses[:, None] != STARS).astype(float)
        return float((self.law * each).sum(axis=1).mean())


class Table:
    """What the predictors share: scikit-learn's manners, and a guess for each pair."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {"seed": self.seed}

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.guesses_[X[:, 0] * ITEMS[1] + X[:, 1]]


class Memory(Table):
    """Repeats the last label it saw."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Memory:
        self.guesses_ = np.full(ITEMS[0] * ITEMS[1], 3)
        self.guesses_[X[:, 0] * ITEMS[1] + X[:, 1]] = y
        return self


class Luckiest(Table):
    """The best on its own data of fifty random tables."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Luckiest:
        tables = np.random.default_rng((self.seed, len(y))).integers(1, 6, (50, ITEMS[0] * ITEMS[1]))
        errors = np.abs(tables[:, X[:, 0] * ITEMS[1] + X[:, 1]] - y).sum(axis=1)
        self.guesses_ = tables[errors.argmin()]
        return self


class Spiteful(Table):
    """Good while few rows are known (so that a small ν is chosen), as bad as it can later."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Spiteful:
        middle = int(np.median(y))
        self.guesses_ = np.full(ITEMS[0] * ITEMS[1], middle if len(y) < 200 else (5 if middle < 3 else 1))
        return self


PREDICTORS = {"memory": Memory, "luckiest of 50": Luckiest, "spiteful": Spiteful}


def tables(runs: int, seed: int, n: int = 300) -> dict[str, dict[str, dict[str, float]]]:
    """Predictor and loss → failures of the certificate, and of two uses that its assumptions exclude."""
    out = {}
    for name, kind in PREDICTORS.items():
        for convex in (True, False):
            failed = dict.fromkeys(("progressive", "covered predictor", "broken: sorted rows", "broken: seen"), 0)
            for run in range(runs):
                rng = np.random.default_rng((seed, run))
                world = World(int(rng.integers(2**31)))
                X, y = world.draw(n, rng)
                options = {"loss": "absolute" if convex else "zero-one", "alphabet": STARS, "delta": DELTA, "blocks": 4}
                certificate = certify_progressive(kind(run), X, y, **options)
                failed["progressive"] += certificate.value < members_loss(certificate, world, convex)
                if convex:  # the members' mean prediction itself
                    mean = world.loss(certificate.model.predict(world.pairs), True)
                    failed["covered predictor"] += certificate.value < mean
                sorted_rows = certify_progressive(kind(run), X, y, order="arrival", **options)
                failed["broken: sorted rows"] += sorted_rows.value < members_loss(sorted_rows, world, convex)
                failed["broken: seen"] += seen(kind(run).fit(X, y), X, y, world, convex)
            if not convex:
                del failed["covered predictor"]
            loss = "convex" if convex else "not convex"
            out[f"{name}, {loss}"] = {key: summary(count, runs) for key, count in failed.items()}
    return out


def references(runs: int, seed: int, n: int = 300) -> dict[str, dict[str, dict[str, float]]]:
    """The same predictors with two references, and a source that changes meanwhile, which the assumptions exclude."""
    out = {}
    for name, kind in PREDICTORS.items():
        for convex in (True, False):
            failed = dict.fromkeys(("with references", "broken: drifting draws"), 0)
            for run in range(runs):
                rng = np.random.default_rng((seed, run))
                world = World(int(rng.integers(2**31)))
                X, y = world.draw(n, rng)
                loss = "absolute" if convex else "zero-one"
                certificate = certify_progressive(
                    kind(run), X, y, loss=loss, alphabet=STARS, delta=DELTA, blocks=3, references=2, warm_up=0.6
                )
                failed["with references"] += certificate.value < members_loss(certificate, world, convex)
                failed["broken: drifting draws"] += drifting(rng, n)
            out[f"{name}, {'convex' if convex else 'not convex'}"] = {k: summary(v, runs) for k, v in failed.items()}
    return out


def drifting(rng: np.random.Generator, n: int, risk: float = 0.3) -> bool:
    """A reference that is never wrong while draws are easy, and as often as the members when they no longer are."""
    reference = np.concatenate([np.zeros(2 * n), (rng.random(n) < risk).astype(float)])
    members = (rng.random(n) < risk).astype(float)
    return bool(Progressive(nu=4.0, delta=DELTA).with_references([reference, members]).value < risk)


def members_loss(certificate: object, world: World, convex: bool) -> float:
    """L̄: the expected loss of a member drawn by its share."""
    model = certificate.model
    return float(model.shares_ @ [world.loss(member.predict(world.pairs), convex) for member in model.members_])


def seen(member: Table, X: np.ndarray, y: np.ndarray, world: World, convex: bool) -> bool:
    """The same formula on rows that the member has learned from."""
    guesses = member.predict(X)
    losses = np.abs(y - guesses) / 4 if convex else (y != guesses).astype(float)
    value = progressive_bound(float(np.log1p(-losses / 2.0).sum()), len(y), 2.0, log(1 / DELTA))
    return bool((4 if convex else 1) * value < world.loss(member.predict(world.pairs), convex))


def extremes(results: dict[str, dict[str, dict[str, dict[str, float]]]]) -> dict[str, dict[str, float]]:
    """The most failures of sound bounds; of each mistake, the case in which it shows best."""
    rows = [(key, row) for part in results.values() for case in part.values() for key, row in case.items()]
    sound = max((row for key, row in rows if not key.startswith("broken")), key=lambda row: row["rate"])
    names = {key for key, _ in rows if key.startswith("broken")}
    shown = {name: max(row["rate"] for key, row in rows if key == name) for name in sorted(names)}
    return {"sound": sound, "broken": {"rate": min(shown.values()), **shown}}


def main() -> None:
    args = common.arguments("Progressive validation against the truth.", "coverage_progressive")
    runs = 200 if args.quick else 4000
    results: dict = {"streams": streams(runs, args.seed)}
    results["tables"] = tables(runs, args.seed)
    results["references"] = references(runs, args.seed)
    results["summary"] = extremes({key: results[key] for key in ("streams", "tables", "references")})
    common.write(args, settings={"runs": runs, "delta": DELTA, "length": LENGTH, "rows": 300}, results=results)
    for part in ("streams", "tables", "references"):
        for case, row in results[part].items():
            print(f"{case:32}", ", ".join(f"{key} {value['rate']:.4f}" for key, value in row.items()))
    print(results["summary"])


if __name__ == "__main__":
    main()
