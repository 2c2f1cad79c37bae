"""The demo: digits with holes, filled in, with the error beside its certificate."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Floats
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.certificates.holdout import certify_predictions
from gingham.cli import console as screen
from gingham.cli.demo_data import load_images, tuples
from gingham.cli.demo_picture import draw
from gingham.models.grid.estimator import CoClusteringRegressor
from gingham.report import summarize, write

HIDDEN = 0.6  # share of the pixels that are hidden
SET_ASIDE = 0.1  # share of the visible pixels kept for the certificate
GREY_LEVELS = range(17)
DELTA = 0.05


def run_demo(folder: Path, seed: int = 0, quiet: bool = False) -> dict[str, Any]:
    """Write pictures, model and numbers into a folder; return the facts to show."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    digits, truths = load_images()
    names = [f"no. {image:04d}, a {truth}" for image, truth in enumerate(truths)]
    rng = np.random.default_rng(seed)
    visible = rng.random(digits.shape) >= HIDDEN
    aside = visible & (rng.random(digits.shape) < SET_ASIDE)
    learn = visible & ~aside

    X, y = tuples(digits, learn, names)
    unseen, truth = tuples(digits, ~visible, names)
    with screen.sweeps("filling in: 40 × 64 clusters", quiet) as callback:
        fine = CoClusteringRegressor((40, 64), "absolute", 0.2, GREY_LEVELS, random_state=seed)
        fine.fit(X, y, callback=callback)
    with screen.sweeps("for reading: 10 × 20 clusters", quiet) as callback:
        coarse = CoClusteringRegressor(
            (10, 20), "absolute", alphabet=GREY_LEVELS, objective="certificate", random_state=seed
        )
        coarse.fit(X, y, callback=callback)
    one = CoClusteringRegressor(1, "absolute", alphabet=GREY_LEVELS, random_state=seed).fit(X, y)

    filled = digits.astype(float)
    filled[~visible] = fine.predict(unseen)
    by_mean, by_median = pixel_baselines(digits, learn, np.nonzero(~visible)[1])
    aside_X, aside_y = tuples(digits, aside, names)
    readable = jensen(coarse, X, y)
    exact = certify_predictions(fine.predict(aside_X), aside_y, alphabet=GREY_LEVELS, delta=DELTA)
    lines = [
        ("40 × 64 clusters, mean", mean_error(filled[~visible], truth), exact.value, "a tenth set aside"),
        (
            "10 × 20 clusters, mean",
            mean_error(coarse.predict(unseen), truth),
            readable.value,
            "no data set aside",
        ),
        ("one cluster", mean_error(one.predict(unseen), truth), jensen(one, X, y).value, "no data set aside"),
        ("the pixel's median", mean_error(by_median, truth), None, ""),
        ("the pixel's mean", mean_error(by_mean, truth), None, ""),
    ]
    draw(folder / "digits.png", coarse, digits, visible, filled, names)
    summary = summarize(
        coarse.posterior_,
        coarse.sample(X, y),
        title="Handwritten digits, 60 % hidden",
        label="grey level",
        facts={"visible pixels": len(y), "hidden pixels": len(truth)},
        errors={f"hidden pixels: {name}": error for name, error, _, _ in lines[1:]},
        certificates={"visible pixels": readable},
    )
    write(summary, folder / "report.html")
    fine.save(folder / "digits.gingham")
    facts = {
        "images": digits.shape[0],
        "pixels": digits.shape[1],
        "hidden": int((~visible).sum()),
        "predictors": [
            {"predictor": name, "error": error, "certified": value, "how": how} for name, error, value, how in lines
        ],
    }
    (folder / "digits.json").write_text(json.dumps(screen.plain(facts), indent=2, ensure_ascii=False))
    facts["seconds"] = round(time.perf_counter() - began, 1)
    facts["files"] = [str(folder / name) for name in ("digits.png", "report.html", "digits.json", "digits.gingham")]
    return facts


def show_demo(facts: dict[str, Any]) -> None:
    """The numbers as a table, and where the files are."""
    screen.grid(
        f"{facts['hidden']:,} hidden pixels of {facts['images']:,} digits, filled in "
        "(mean absolute error, grey levels 0 to 16)",
        ("predictor", "error on hidden pixels", "certified, 95 % confidence", ""),
        [
            (line["predictor"], line["error"], "" if line["certified"] is None else line["certified"], line["how"])
            for line in facts["predictors"]
        ],
    )
    screen.console().print(f"{facts['seconds']} s. Look at {', '.join(facts['files'])}.", markup=False)


def jensen(model: CoClusteringRegressor, X: pl.DataFrame, y: AnyArray) -> Certificate:
    """The certificate of the mean prediction on the very pixels the model was fitted on."""
    return certify(model, X, y, delta=DELTA, predictor="mean")


def pixel_baselines(digits: AnyArray, learn: AnyArray, pixels: AnyArray) -> tuple[Floats, Floats]:
    """What the mean and the median of a pixel over the other images predict."""
    seen = np.where(learn, digits, np.nan)
    return np.nanmean(seen, axis=0)[pixels], np.nanmedian(seen, axis=0)[pixels]


def mean_error(predicted: Any, truth: AnyArray) -> float:
    return float(np.abs(predicted - truth).mean())
