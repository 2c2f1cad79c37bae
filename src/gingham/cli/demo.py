"""The demo: digits with holes, filled in, with the error beside its certificate."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.certificates.certify import certify
from gingham.certificates.holdout import certify_predictions
from gingham.cli import screen
from gingham.cli.demo_picture import draw
from gingham.errors import GinghamError
from gingham.estimators.coclustering import CoClusteringRegressor

HIDDEN = 0.6  # share of the pixels that are hidden
SET_ASIDE = 0.1  # share of the visible pixels kept for the certificate
GREY_LEVELS = range(17)
DELTA = 0.05


def run_demo(folder: Path, seed: int = 0, quiet: bool = False) -> dict[str, Any]:
    """Write pictures, model and numbers into a folder; return the facts to show."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_images()
    rng = np.random.default_rng(seed)
    visible = rng.random(digits.shape) >= HIDDEN
    aside = visible & (rng.random(digits.shape) < SET_ASIDE)
    learn = visible & ~aside

    X, y = tuples(digits, learn)
    unseen, truth = tuples(digits, ~visible)
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
    by_mean, by_median = pixel_baselines(digits, learn, unseen[:, 1])
    aside_X, aside_y = tuples(digits, aside)
    exact = certify_predictions(fine.predict(aside_X), aside_y, alphabet=GREY_LEVELS, delta=DELTA)
    lines = [
        ("40 × 64 clusters, mean", mean_error(filled[~visible], truth), exact.value, "a tenth set aside"),
        (
            "10 × 20 clusters, mean",
            mean_error(coarse.predict(unseen), truth),
            jensen(coarse, X, y),
            "no data set aside",
        ),
        ("one cluster", mean_error(one.predict(unseen), truth), jensen(one, X, y), "no data set aside"),
        ("the pixel's median", mean_error(by_median, truth), None, ""),
        ("the pixel's mean", mean_error(by_mean, truth), None, ""),
    ]
    draw(folder / "digits.png", coarse, digits, visible, filled)
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
    facts["files"] = [str(folder / name) for name in ("digits.png", "digits.json", "digits.gingham")]
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


def jensen(model: CoClusteringRegressor, X: Anything, y: Anything) -> float:
    """The certificate of the mean prediction on the very pixels the model was fitted on."""
    return certify(model, X, y, delta=DELTA, predictor="mean").value


def load_images() -> Anything:
    """1797 digits of 8 × 8 pixels with grey levels 0-16, which scikit-learn ships: shape (1797, 64)."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:  # pragma: no cover - scikit-learn is a dependency
        raise GinghamError("The demo needs scikit-learn.") from None
    return load_digits().data.astype(np.int64)


def tuples(digits: Anything, mask: Anything) -> tuple[Anything, Anything]:
    """(image, pixel) pairs under a mask, and their grey levels."""
    return np.argwhere(mask), digits[mask]


def pixel_baselines(digits: Anything, learn: Anything, pixels: Anything) -> tuple[Floats, Floats]:
    """What the mean and the median of a pixel over the other images predict."""
    seen = np.where(learn, digits, np.nan)
    return np.nanmean(seen, axis=0)[pixels], np.nanmedian(seen, axis=0)[pixels]


def mean_error(predicted: Any, truth: Anything) -> float:
    return float(np.abs(predicted - truth).mean())
