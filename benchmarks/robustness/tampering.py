"""Tampering with certificates: files, models and tables that were changed, and honest ones that must be verified.

The kinds of tampering are those of ``tests/test_verify.py``: single values of the file, the model or the table; forgers
who put in all numbers that follow from what they changed; files that could be read in two ways. Beside them honest runs
with settings drawn at random are saved and verified.

    python benchmarks/robustness/tampering.py
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import gingham as gg
import test_verify as kinds
from common import arguments, write
from gingham import verify

FIGURES = {
    "kinds of tampering": "summary/kinds",
    "of these found": "summary/found",
    "honest runs verified": "summary/honest runs verified",
}
HONEST = 150


def checked(place: Path) -> tuple[int, str]:
    """Exit code and words of the checker."""
    model = place / "model.gingham"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = verify.main(place / "c.json", model if model.exists() else "-", place / "data.csv")
    return code, said.getvalue()


def honest(rng: np.random.Generator, folder: Path) -> tuple[int, str, str]:
    """A certificate with settings drawn at random, written and checked."""
    n, items = int(rng.integers(80, 400)), int(rng.integers(3, 20))
    X = rng.integers(0, items, (n, 2))
    y = np.where(rng.random(n) < 0.3, rng.integers(1, 6, n), np.where(X.sum(axis=1) % 2 == 0, 5, 1))
    w = rng.integers(1, 4, n) if rng.random() < 0.3 else None
    seed, delta = int(rng.integers(2**31)), float(rng.uniform(0.001, 0.3))
    model = gg.CoClusteringRegressor(
        int(rng.integers(1, 4)), alphabet=range(1, 6), offsets=False, random_state=int(rng.integers(100))
    )
    kind = str(rng.choice(["in sample", "holdout", "split", "predictions", "progressive"]))
    names = rng.choice(["a", "b", "c"], n) if rng.random() < 0.4 else None
    table: dict[str, Any] = {"user": X[:, 0], "film": X[:, 1]}
    own: Any = model
    how: dict[str, Any] = {"delta": delta, "random_state": seed}
    if kind == "in sample":
        names = None
        certificate = gg.certify(model.fit(X, y, w), X, y, sample_weight=w, delta=delta)
    elif kind == "holdout":
        half = n // 2
        model.fit(X[:half], y[:half])
        strata = None if names is None else "known/new" if rng.random() < 0.5 else names[half:]
        table, X, y, w = {name: column[half:] for name, column in table.items()}, X[half:], y[half:], None
        names = strata if isinstance(strata, np.ndarray) else None
        rule = str(rng.choice(["median", "mean", "mode"]))
        certificate = gg.certify(model, X, y, bound="holdout", predictor=rule, strata=strata, **how)
    elif kind == "split":
        names, method = None, str(rng.choice(["holdout", "prior"]))
        certificate = gg.certify(model, X, y, bound="split", method=method, sample_weight=w, **how)
        own = certificate.model
    elif kind == "predictions":
        guess, own = np.clip(y + rng.normal(0, 1, n), 1, 5), None
        table, method = {"guess": guess}, str(rng.choice(["log-wealth", "betting"]))
        certificate = gg.certify_predictions(
            y, guess, label_bounds=(1, 5), strata=names, sample_weight=w, method=method,
            candidates=int(rng.integers(1, 9)), **how,
        )  # fmt: skip
    else:
        strata = names if rng.random() < 0.7 else "known/new"
        names = strata if isinstance(strata, np.ndarray) else None
        certificate = gg.certify_progressive(
            model, X, y, sample_weight=w, blocks=int(rng.integers(1, 5)), strata=strata,
            order=str(rng.choice(["shuffle", "arrival"])), delta=delta, random_state=seed,
        )  # fmt: skip
        own = certificate.model
    table |= {} if names is None else {"stratum": names}
    table |= {"stars": y} | ({} if w is None else {"weight": w})
    certificate.save(folder / "c.json")
    if own is not None:
        own.save(folder / "model.gingham")
    kinds.write_csv(folder / "data.csv", table)
    return (*checked(folder), kind)


def main() -> None:
    args = arguments(__doc__ or "", "tampering")
    made: dict[str, Path] = {}
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)

        def original(kind: str) -> Path:
            if kind not in made:
                certificate, model, table = kinds.make(kind)
                made[kind] = folder / f"made {len(made)}"
                made[kind].mkdir()
                certificate.save(made[kind] / "c.json")
                if model is not None:
                    model.save(made[kind] / "model.gingham")
                kinds.write_csv(made[kind] / "data.csv", table)
            return made[kind]

        def tried(title: str, kind: str, change: Callable[[Any, Path], Any], rounds: int) -> None:
            place = folder / "tried"
            shutil.copytree(original(kind), place)
            document = json.loads((place / "c.json").read_text())
            change(document, place)
            for _ in range(rounds):
                (place / "c.json").write_text(json.dumps(document))
                code, words = checked(place)
                if not kinds.computed_again(document, words):
                    break
            found[title] = {"of": kind, "exit code": code, "says": words.strip().splitlines()[-1][:160]}
            shutil.rmtree(place)

        for cases, rounds in ((kinds.TAMPERED, 1), (kinds.FORGED, 4)):
            for title, (kind, change) in cases.items():
                tried(title, kind, change, rounds)
        for title, change in kinds.UNREADABLE.items():
            place = folder / "tried"
            shutil.copytree(original("in sample"), place)
            (place / "c.json").write_text(change((place / "c.json").read_text()))
            code, words = checked(place)
            found[title] = {"of": "in sample", "exit code": code, "says": words.strip()[:160]}
            shutil.rmtree(place)
        rng, wrong, n = np.random.default_rng(args.seed), [], 10 if args.quick else HONEST
        for _ in range(n):
            place = folder / "honest"
            place.mkdir()
            code, words, kind = honest(rng, place)
            if code:
                wrong.append({"kind": kind, "says": words})
                print(kind, words)
            shutil.rmtree(place)
    missed = [title for title, one in found.items() if one["exit code"] == 0]
    results = {
        "summary": {"kinds": len(found), "found": len(found) - len(missed), "missed": missed, "honest runs": n,
                    "honest runs verified": n - len(wrong)},
        "tampering": found, "honest runs that were not verified": wrong,
    }  # fmt: skip
    print(results["summary"])
    write(args, settings={"honest runs": n}, results=results)


if __name__ == "__main__":
    main()
