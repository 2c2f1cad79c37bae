"""What results.md says about layers, written from the JSON files whenever the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measured import results

OURS, DATED = "ours + side", "ours + side + time"
MYFM, MYFM_DATED = "myFM ordinal, ids + implicit + side", "myFM ordinal, ids + implicit + side + time"
LENSKIT, SVD = "LensKit item-kNN (20 neighbours)", "Surprise SVD (100 factors, 60 epochs, reg .1)"
ERRORS = ("rmse", "mae", "label")


def short(value: float, digits: int = 4) -> str:
    """Without the 0 before the point."""
    return f"{value:.{digits}f}".removeprefix("0")


def means(found: dict[str, Any], splits: list[str], method: str, name: str) -> float:
    return sum(found["by_split"][split][method][name] for split in splits) / len(splits)


def others(found: dict[str, Any]) -> Iterator[str]:
    """Intervals, the order of time, MovieLens-1M and Jester."""
    group = found["summary"]
    here, later = group["u1-u5"]["means"], group["later"]["means"]
    share = {method: f"{100 * here[method]['coverage_90']:.1f} %" for method in (OURS, DATED)}
    yield (
        f"Intervals that should cover 90 % cover {share[OURS]} without time and {share[DATED]} with it. In the order "
        "of time (the first 80 % for training, the rest for testing) every error is larger, "
        f"{later[OURS]['rmse']:.3f} for layers, {later[DATED]['rmse']:.3f} with windows of time, "
        f"{min(row['rmse'] for name, row in later.items() if name.startswith('myFM')):.3f} for myFM's best form, "
        f"{later[SVD]['rmse']:.3f} for SVD. Intervals cover {100 * later[OURS]['coverage_90']:.1f} %, because most of "
        "these users have no rating in the training part and therefore wide intervals."
    )
    yield ""
    tenth, fifth, jokes = (group[name]["means"] for name in ("ml1m-90", "ml1m-80", "jester-80"))
    own, peer = jokes["ours"], jokes["myFM ids"]
    yield (
        f"On a random tenth of MovieLens-1M layers have {short(tenth[OURS]['rmse'])} in {tenth[OURS]['cpu_s']:.0f} CPU "
        f"seconds, the means of three seeds, myFM's best form {short(tenth[MYFM]['rmse'])} in "
        f"{tenth[MYFM]['cpu_s']:.0f} (with the rank chosen on the first seed). With a random fifth for "
        f"testing: {short(fifth[OURS]['rmse'])} in {fifth[OURS]['cpu_s']:.0f}, myFM {short(fifth[MYFM]['rmse'])} in "
        f"{fifth[MYFM]['cpu_s']:.0f}. On Jester (400,000 ratings from −10 to 10 of a hundred jokes, three seeds) each "
        f"joke is its own cluster: RMSE {own['rmse']:.3f} and MAE {own['mae']:.3f} in {own['cpu_s']:.0f} CPU "
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
        f"{three('cold-movies', 'averages')}, myFM {three('cold-movies', machine)}. Here layers predict {bias(OURS)} "
        f"too low (averages {bias('averages')}), because popular movies have more ratings, so the average movie has "
        "fewer stars than the average rating. The intervals are not calibrated and too wide: those of 90 % cover "
        f"{cover['cold-users']:.0f} % for new users and {cover['cold-movies']:.0f} % for new movies."
    )


VOTES = {
    "dated": "layers, with the time of the roll call", "layered": "layers", "grid": "one checkerboard (gingham)",
    "myfm": "myFM, probit", "periods": "logistic factors of each eighth of the time", "logistic": "logistic factors",
    "als": "alternating least squares", "knn": "nearest senators", "averages": "averages, logistic",
    "majority": "shares of each roll call",
}  # fmt: skip


def votes(found: dict[str, Any]) -> Iterator[str]:
    """The Senate: a random tenth of the votes, and later roll calls."""
    splits = found["by_split"]
    random = [name for name in splits if name.startswith("senate")]
    yield "| | " + " | ".join(f"split {at + 1}" for at in range(len(random))) + " | later | CPU s |"
    yield "|---|" + "---:|" * (len(random) + 2)
    for method, title in VOTES.items():
        mine = [splits.get(name, {}).get(method) for name in (*random, "time")]
        if any(mine):
            cells = ["" if one is None else f"{100 * one['error']:.2f}, {short(one['log_loss'])}" for one in mine]
            spent = [one["cpu_s"] for one in mine if one is not None]
            yield f"| {title} | {' | '.join(cells)} | {sum(spent) / len(spent):.0f} |"


TABLES = {
    "layers_votes": lambda: votes(results("peers_votes")),
    "layers_other_data": lambda: others(results("peers_baskets")),
    "layers_cold_start": lambda: cold_start(results("peers_baskets")),
}
