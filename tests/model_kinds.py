"""A small file of every kind of model, and the options that fit it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

# Groups of these are distilled from their predictions after the fit, which takes longer than the fit itself.
DISTILLED = ("layered", "committee", "survey")


@dataclass(frozen=True)
class Case:
    """How one kind is fitted on its file."""

    kind: str
    file: Path
    options: list[str]
    stated: tuple[str, ...] = ()  # what a certificate must be told besides

    def fit(self, out: Path, *more: str) -> list[str]:
        return ["fit", str(self.file), "--model", self.kind, *self.options, "-q", "--out", str(out), *more]


def write_tables(folder: Path, scale: int = 1) -> dict[str, Case]:
    """Planted tables, one for each kind; ``scale`` makes them that many times as long."""
    rng = np.random.default_rng(0)
    n = 600 * scale
    user, movie = rng.integers(0, 20 * scale, n), rng.integers(0, 15, n)
    answer = np.array([[5, 2], [1, 4]])[user % 2, movie % 2]
    rating = np.clip(answer + rng.choice([-1, 0, 0, 0, 1], n), 1, 5)
    ratings = folder / "ratings.csv"
    pl.DataFrame({"user": user, "movie": [f"film {m}" for m in movie], "rating": rating}).write_csv(ratings)
    genres = folder / "genres.csv"
    rows = [{"movie": f"film {m}", "genre": g, "has": int((m % 2 == 0) == (g == "war"))}
            for m in range(16) for g in ("war", "love")]  # fmt: skip
    pl.DataFrame(rows).write_csv(genres)
    nodes = [(f"n{i:02d}", f"n{j:02d}") for i in range(60 * scale) for j in range(i)
             if rng.random() < (0.8 if i % 2 == j % 2 else 0.1)]  # fmt: skip
    edges = folder / "edges.csv"
    pl.DataFrame(nodes, schema=["from", "to"], orient="row").write_csv(edges)
    word, document = rng.integers(0, 18 * scale, 900 * scale), rng.integers(0, 12 * scale, 900 * scale)
    kept = rng.random(900 * scale) < np.where(word % 2 == document % 2, 0.9, 0.15)
    counts = folder / "counts.csv"
    pl.DataFrame({"word": [f"w{w:02d}" for w in word[kept]], "document": document[kept]}).write_csv(counts)
    side, scale_of = rng.integers(0, 2, 40 * scale), np.array(["no", "yes"], dtype=object)
    asked = {f"question {q}": scale_of[side ^ (rng.random(len(side)) < 0.1) ^ q % 2] for q in range(6)}
    asked["question 0"][::7] = "prefer not to say"
    answers = folder / "answers.csv"
    pl.DataFrame({"person": [f"p{k:02d}" for k in range(len(side))], **asked}).write_csv(answers)
    tuples = ["--axes", "user,movie", "--label", "rating"]
    stated = ["--alphabet", "1..5"]
    cases = [
        Case("coclustering", ratings, [*tuples, "--clusters", "3,3", "--beta", "1", *stated]),
        Case("layered", ratings, [*tuples, "--clusters", "2,2", *stated]),
        Case("committee", ratings,
             [*tuples, "--clusters", "2,2", "--beta", "1", "--max-iter", "8", "--members", "3", *stated]),
        Case("bayesian", ratings, [*tuples, "--clusters", "2,2", *stated]),
        Case("tree", ratings, [*tuples, "--clusters", "2,2", "--beta", "1", *stated]),
        Case("joint", ratings, [*tuples, "--clusters", "2,2", "-r", f"movie,genre=has:{genres}", *stated]),
        Case("graph", edges, ["--axes", "from,to", "--clusters", "3"]),
        Case("cooccurrence", counts, ["--axes", "word,document", "--clusters", "3,3", "--holdout", ".1"],
             ("--population", f"{18 * scale},{12 * scale}")),
        Case("ranking", counts, ["--axes", "document,word"]),
        Case("survey", answers, ["--wide", "--effort", "fast"], ("--alphabet", "no,yes")),
    ]  # fmt: skip
    return {case.kind: case for case in cases}
