"""
The demo: digits with holes, filled in
======================================

Hide 60 % of the pixels of 1797 handwritten digits and fill them in, with the error beside its certificate. As a script,
``python examples/demo.py --out demo`` writes a picture, a report page, the numbers and the model into a folder.
"""

from __future__ import annotations

# sphinx_gallery_thumbnail_path = "_static/digits.png"
import argparse
import json
import time
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.datasets import load_digits

import gingham as gg
from gingham import plots
from gingham.report import write_model

HIDDEN = 0.6  # share of the pixels that are hidden
SET_ASIDE = 0.1  # share of the visible pixels kept for the certificate
GREY_LEVELS = range(17)
DELTA = 0.05
SHOWN = range(10)  # images that are drawn: they happen to be the digits 0 to 9
INK, UNSEEN = "#22303c", "#d9d9de"  # of what is written, and where nothing was observed
ROWS = ("original", "60 % hidden", "filled in")


def run_demo(folder: Path, seed: int = 0) -> dict:
    """Write pictures, model and numbers into a folder; return the facts to show."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    digits, truths = load_images()
    names = [f"no. {image:04d}, a {truth}" for image, truth in enumerate(truths)]
    rng = np.random.default_rng(seed)
    visible = rng.random(digits.shape) >= HIDDEN
    aside = visible & (rng.random(digits.shape) < SET_ASIDE)
    learn = visible & ~aside

    X, y = observations(digits, learn, names)
    unseen, truth = observations(digits, ~visible, names)
    settings = {"loss": "absolute", "alphabet": GREY_LEVELS, "offsets": False, "random_state": seed}
    fine = gg.CoClusteringRegressor((40, 64), beta=0.2, **settings).fit(X, y)  # fills in
    coarse = gg.CoClusteringRegressor((10, 20), objective="certificate", **settings).fit(X, y)
    one = gg.CoClusteringRegressor(1, **settings).fit(X, y)

    filled = digits.astype(float)
    filled[~visible] = fine.predict(unseen)
    by_mean, by_median = pixel_baselines(digits, learn, np.nonzero(~visible)[1])
    aside_X, aside_y = observations(digits, aside, names)
    readable = jensen(coarse, X, y)
    exact = gg.certify_predictions(aside_y, fine.predict(aside_X), alphabet=GREY_LEVELS, delta=DELTA)
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
    page, title = folder / "report.html", "Handwritten digits, 60 % hidden"
    write_model(coarse, page, title=title, label="grey level", certificates={"visible pixels": readable})
    fine.save(folder / "digits.gingham")
    facts = {
        "images": digits.shape[0],
        "pixels": digits.shape[1],
        "hidden": int((~visible).sum()),
        "predictors": [
            {"predictor": name, "error": error, "certified": value, "how": how} for name, error, value, how in lines
        ],
    }
    (folder / "digits.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False))
    facts["seconds"] = round(time.perf_counter() - began, 1)
    facts["files"] = [str(folder / name) for name in ("digits.png", "report.html", "digits.json", "digits.gingham")]
    return facts


def show(facts: dict) -> None:
    """The numbers as a table, and where the files are."""
    print(f"{facts['hidden']:,} hidden pixels of {facts['images']:,} digits, filled in "
          "(mean absolute error, grey levels 0 to 16)")  # fmt: skip
    print(f"{'predictor':24} {'error on hidden pixels':>22} {'certified, 95 % confidence':>27}")
    for line in facts["predictors"]:
        certified = "" if line["certified"] is None else f"{line['certified']:.4g}"
        print(f"{line['predictor']:24} {line['error']:22.4g} {certified:>27}  {line['how']}")
    print(f"{facts['seconds']} s. Look at {', '.join(facts['files'])}.")


def jensen(model: gg.CoClusteringRegressor, X: pl.DataFrame, y: np.ndarray) -> gg.Certificate:
    """The certificate of the mean prediction on the very pixels the model was fitted on."""
    return gg.certify(model, X, y, delta=DELTA, predictor="mean")


def pixel_baselines(digits: np.ndarray, learn: np.ndarray, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the mean and the median of a pixel over the other images predict."""
    seen = np.where(learn, digits, np.nan)
    return np.nanmean(seen, axis=0)[pixels], np.nanmedian(seen, axis=0)[pixels]


def mean_error(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(predicted - truth).mean())


def load_images() -> tuple[np.ndarray, np.ndarray]:
    """1797 digits of 8 × 8 pixels with grey levels 0-16, which scikit-learn ships: (1797, 64), and what they are."""
    bunch = load_digits()
    return bunch.data.astype(np.int64), bunch.target


def observations(digits: np.ndarray, mask: np.ndarray, names: list[str]) -> tuple[pl.DataFrame, np.ndarray]:
    """(image, pixel) pairs under a mask, by name, and their grey levels."""
    images, pixels = np.nonzero(mask)
    places = np.array([f"row {pixel // 8 + 1}, column {pixel % 8 + 1}" for pixel in range(digits.shape[1])])
    return pl.DataFrame({"image": np.array(names)[images], "pixel": places[pixels]}), digits[mask]


def draw(
    path: Path,
    readable: gg.CoClusteringRegressor,
    digits: np.ndarray,
    visible: np.ndarray,
    filled: np.ndarray,
    names: list[str],
) -> None:
    """Write the picture; ``readable`` is the coarse model whose clusters order the matrix."""
    figure = plt.figure(figsize=(12, 3.4), facecolor="white")
    sides = figure.add_gridspec(
        1, 2, width_ratios=(1, 2.45), left=0.005, right=0.995, bottom=0.07, top=0.91, wspace=0.06
    )
    boards = sides[0].subgridspec(1, 2, wspace=0.06)
    holes = np.where(visible, digits, np.nan)
    for at, (values, title) in enumerate(((holes, "1797 digits, 60 % hidden"), (filled, "filled in, by clusters"))):
        ax = figure.add_subplot(boards[at])
        X, y = observations(values, np.isfinite(values), names)
        sample = readable.sample(X, np.rint(y).astype(int))
        plots.checkerboard(readable.posterior_, sample, reorder=at == 1, ax=ax)
        colors = ax.images[0].get_cmap()
        ax.set_title(title, color=INK, fontsize=10)
        ax.set_xlabel("64 pixels", color=INK)
        ax.set_ylabel("")
        _bare(ax)
    grid = sides[1].subgridspec(3, len(SHOWN), wspace=0.05, hspace=0.05)
    for column, image in enumerate(SHOWN):
        for row, pixels in enumerate((digits[image], holes[image], filled[image])):
            ax = figure.add_subplot(grid[row, column])
            ax.set_facecolor(UNSEEN)
            ax.imshow(np.ma.masked_invalid(pixels.reshape(8, 8)), cmap=colors, vmin=0, vmax=16)
            _bare(ax)
            if column == 0:
                ax.set_ylabel(ROWS[row], color=INK, fontsize=10)
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
    plt.close(figure)


def _bare(ax: plt.Axes) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def main(arguments: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description="Hide 60 % of the pixels of 1797 digits and fill them in.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same result")
    args = parser.parse_args(arguments)
    facts = run_demo(args.out, args.seed)
    show(facts)
    return facts


if __name__ == "__main__":
    main()
