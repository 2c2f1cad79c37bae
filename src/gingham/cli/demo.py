"""The demo: digits with holes, filled in, with the error beside its certificate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.certificates.certify import certify
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
    model = CoClusteringRegressor(
        n_clusters=(40, 64), loss="absolute", beta=0.2, alphabet=GREY_LEVELS, random_state=seed
    )
    with screen.sweeps("co-clustering images × pixels", quiet) as callback:
        model.fit(X, y, callback=callback)

    unseen, truth = tuples(digits, ~visible)
    predicted = model.predict(unseen)
    by_mean, by_median = pixel_baselines(digits, learn, unseen[:, 1])
    randomised = certify(model, X, y, delta=DELTA, predictor="mean")
    exact = certify(model, *tuples(digits, aside), bound="holdout", delta=DELTA, predictor="mean")

    filled = digits.astype(float)
    filled[~visible] = predicted
    draw(folder, model, digits, visible, filled, X, y)
    model.save(folder / "digits.gingham")
    return {
        "images × pixels": digits.shape,
        "pixels hidden": int((~visible).sum()),
        "error on hidden pixels (mean absolute, of 16)": mean_error(predicted, truth),
        "certified with 95 % confidence, data set aside": exact.value,
        "certified with 95 % confidence, no data set aside": randomised.value,
        "error of the pixel's mean": mean_error(by_mean, truth),
        "error of the pixel's median": mean_error(by_median, truth),
        "error of the best constant": mean_error(np.median(y), truth),
        "seconds": round(time.perf_counter() - began, 1),
        "files": ", ".join(str(path) for path in sorted(folder.iterdir())),
    }


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
