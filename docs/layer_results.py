"""What guide/layers.md says of errors beside peers, from peers_baskets.json: ``python docs/layer_results.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measured import ROOT, renewed, results

PAGE = ROOT / "docs" / "guide" / "layers.md"
OURS, DATED = "ours + side", "ours + side + time"
MYFM, MYFM_DATED = "myFM ordinal, ids + implicit + side", "myFM ordinal, ids + implicit + side + time"
LENSKIT, SVD = "LensKit item-kNN (20 neighbours)", "Surprise SVD (100 factors, 60 epochs, reg .1)"
NAMES = {
    DATED: "layers with tables and time",
    MYFM_DATED: "myFM ordinal, the same tables and windows of time",
    OURS: "layers with tables",
    MYFM: "myFM ordinal, ids + implicit + side",
    "myFM ids + implicit + side": "myFM, ids + implicit + side",
    "myFM ids + implicit": "myFM, ids + implicit",
    "myFM ids": "myFM, ids",
    SVD: "Surprise SVD",
    LENSKIT: "LensKit item-kNN",
    "Surprise SVD++ (defaults)": "Surprise SVD++",
}
ERRORS = ("rmse", "mae", "label")


def short(value: float, digits: int = 4) -> str:
    """Without the 0 before the point."""
    return f"{value:.{digits}f}".removeprefix("0")


def means(found: dict[str, Any], splits: list[str], method: str, name: str) -> float:
    return sum(found["by_split"][split][method][name] for split in splits) / len(splits)


def table(found: dict[str, Any]) -> Iterator[str]:
    rows = found["summary"]["u1-u5"]["means"]
    folds = [f"u{k}" for k in range(1, 6)]
    yield "| MovieLens-100K, mean of u1–u5 | RMSE | MAE | whole stars | CPU s |"
    yield "|---|---|---|---|---|"
    for method, name in NAMES.items():
        search = 0.0
        if all("search_cpu_s" in found["by_split"][fold][method] for fold in folds):
            search = means(found, folds, method, "search_cpu_s")
        more = f" (and {search:.0f} for the rank)" if search >= 0.5 else ""
        errors = " | ".join(short(rows[method][error]) for error in ERRORS)
        yield f"| {name} | {errors} | {rows[method]['cpu_s']:.0f}{more} |"


def others(found: dict[str, Any]) -> Iterator[str]:
    """Intervals, the order of time, MovieLens-1M and Jester."""
    group = found["summary"]
    here, later = group["u1-u5"]["means"], group["later"]["means"]
    share = {method: f"{100 * here[method]['coverage_90']:.1f} %" for method in (OURS, DATED)}
    yield (
        f"Intervals that should cover 90 % cover {share[OURS]} without time and {share[DATED]} with it. In the order "
        "of time (the first 80 % for training, what came later for testing) everybody's error is larger, "
        f"{later[OURS]['rmse']:.3f} for layers, {later[DATED]['rmse']:.3f} with windows of time, "
        f"{min(row['rmse'] for name, row in later.items() if name.startswith('myFM')):.3f} for myFM's best form, "
        f"{later[SVD]['rmse']:.3f} for SVD; intervals cover {100 * later[OURS]['coverage_90']:.1f} %, since most of "
        "these users have no rating in the training part, and intervals of such are wide."
    )
    yield ""
    tenth, fifth, jokes = (group[name]["means"] for name in ("ml1m-90", "ml1m-80", "jester-80"))
    own, peer = jokes["ours"], jokes["myFM ids"]
    yield (
        f"On a random tenth of MovieLens-1M layers have {short(tenth[OURS]['rmse'])} in {tenth[OURS]['cpu_s']:.0f} CPU "
        f"seconds, the means of three seeds, myFM's best form {short(tenth[MYFM]['rmse'])} in "
        f"{tenth[MYFM]['cpu_s']:.0f} (its rank was chosen on the first seed and handed on). With a random fifth for "
        f"testing: {short(fifth[OURS]['rmse'])} in {fifth[OURS]['cpu_s']:.0f}, myFM {short(fifth[MYFM]['rmse'])} in "
        f"{fifth[MYFM]['cpu_s']:.0f}. On Jester (400,000 ratings from −10 to 10 of a hundred jokes, three seeds) each "
        f"joke has a cluster of its own: RMSE {own['rmse']:.3f} and MAE {own['mae']:.3f} in {own['cpu_s']:.0f} CPU "
        f"seconds, myFM with ids alone {peer['rmse']:.3f} and {peer['mae']:.3f} in {peer['cpu_s']:.0f}, LensKit "
        f"{jokes[LENSKIT]['rmse']:.3f} and {jokes[LENSKIT]['mae']:.3f}, SVD {jokes[SVD]['rmse']:.3f} and "
        f"{jokes[SVD]['mae']:.3f}."
    )


def cold_start(found: dict[str, Any]) -> Iterator[str]:
    """People known by a basket, movies known by a table."""

    def three(split: str, method: str) -> str:
        row = found["summary"][split]["means"][method]
        return f"{', '.join(f'{row[error]:.3f}'.removeprefix('0') for error in ERRORS)}"

    def bias(method: str) -> str:
        splits = [name for name in found["by_split"] if name.startswith("cold-movies")]
        return short(-means(found, splits, method, "bias"), 2)

    cover = {who: 100 * found["summary"][who]["means"][OURS]["coverage_90"] for who in ("cold-users", "cold-movies")}
    machine = "myFM ids + implicit + side"
    yield (
        "Predictions for *cold-start* users and movies are less certain. A tenth of the users with half of their "
        f"pairs known and no rating (three draws; RMSE, MAE, whole stars): {three('cold-users', OURS)}; averages of "
        "the movies have "
        f"{three('cold-users', 'averages')}, myFM {three('cold-users', machine)}. A tenth of the movies, known by "
        f"genre and year (three draws): {three('cold-movies', OURS)}; averages of the users "
        f"{three('cold-movies', 'averages')}, myFM {three('cold-movies', machine)}. Here layers guess {bias(OURS)} too "
        f"low (averages {bias('averages')}): an unknown movie counts as an average one, and the average movie has "
        "fewer stars than the average rating, since liked movies are rated more often. Their intervals are not "
        "calibrated and rather too wide than too narrow: those of 90 % cover "
        f"{cover['cold-users']:.0f} % for new users and {cover['cold-movies']:.0f} % for new movies."
    )


def plain(found: dict[str, Any]) -> Iterator[str]:
    """Layers without baskets, beside the engines that there were before."""
    yield "| MovieLens-100K, u1 | RMSE | MAE | whole stars | CPU s of the fit |"
    yield "|---|---|---|---|---|"
    for name, row in results("speed_layers")["plain"].items():
        errors = " | ".join(short(row[error]) for error in ERRORS)
        yield f"| {name} | {errors} | {row['fit_cpu_s']:.1f} |"


TABLES = {"errors": table, "other data": others, "cold start": cold_start, "plain": plain}


def renew() -> str:
    """The page with fresh figures."""
    found, page = results("peers_baskets"), PAGE.read_text(encoding="utf-8")
    for name, lines in TABLES.items():
        page = renewed(page, name, "layer_results", lines(found))
    return page


if __name__ == "__main__":
    PAGE.write_text(renew(), encoding="utf-8")
