"""Certificates of the past beside the future: ratings of films and downloads of articles, divided by time.

A model learns from the first four fifths of MovieTweetings and is certified there three times: as a whole, by strata
(items known or new), and re-weighted to the mix of the last fifth, whose labels nobody has seen. Then the last fifth
arrives, and the loss that happened stands beside them; a watch says when the promise has ended, with proof. Sessions of
Epub are certified by what a ranker misses of their last article.

    python benchmarks/robustness/in_time.py --data DATA
"""

from __future__ import annotations

import csv
import gzip
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write
from gingham.models.layers import Sampler

FIGURES = {
    "promised of films": "films/ordinary/promised",
    "happened": "films/ordinary/happened",
    "re-weighted": "films/re-weighted/promised",
}
DELTA, ALPHA, BATCH = 0.05, 0.01, 1000


def alarm(watch: gg.certificates.Watch, batches: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows after which the promise has ended, and of which strata."""
    for batch in batches:
        watch.update(**batch) if "X" in batch else watch.add(**batch)
    return {
        "ended after rows": watch.ended,
        "of rows": watch.n,
        "strata": {track.name: track.ended for track in watch.tracks[1:] if track.ended is not None},
    }


def films(data: Path, seed: int, quick: bool) -> dict[str, Any]:
    """MovieTweetings, labels 0 to 10, absolute loss."""
    kept = load(data, "movietweetings100k.npz")
    order = np.argsort(kept["timestamps"], kind="stable")[:: 20 if quick else 1]
    X = np.column_stack([kept["rows"][order], kept["cols"][order]])
    y = kept["vals"][order].astype(float)
    cut = int(0.8 * len(y))
    model = gg.LayeredCoClusteringRegressor(
        2, 6, baskets=0, sampler=Sampler(n_sweeps=40, n_chains=1), random_state=seed
    )
    how: dict[str, Any] = {"loss": "absolute", "label_bounds": (0, 10), "clip": True, "blocks": 3, "delta": DELTA}
    found: dict[str, Any] = {"rows": len(y), "certified on": cut}
    later, labels = X[cut:], y[cut:]
    batches = [{"X": later[at : at + BATCH], "y": labels[at : at + BATCH]} for at in range(0, len(labels), BATCH)]
    certificates = {
        "ordinary": gg.certify_progressive(model, X[:cut], y[:cut], random_state=seed, **how),
        "in the order of arrival": gg.certify_progressive(model, X[:cut], y[:cut], order="arrival", **how),
        "stratified": gg.certify_progressive(model, X[:cut], y[:cut], strata="known/new", random_state=seed, **how),
    }
    for name, certificate in certificates.items():
        misses = np.abs(certificate.model.predict(later) - labels)
        found[name] = {
            "promised": certificate.value, "observed": certificate.empirical, "happened": float(misses.mean()),
            "watch": alarm(certificate.watch(alpha=ALPHA), batches),
        }  # fmt: skip
        if certificate.strata is None:
            continue
        where = certificate.strata.judge(later)
        before = certificate.strata.judge(X[:cut])
        found[name]["strata"] = {
            part.name: {
                "promised": part.value, "tests": part.n_observations,
                "happened": float(misses[where == part.name].mean()) if (where == part.name).any() else None,
                "share before": float((before == part.name).mean()), "share after": float((where == part.name).mean()),
            }
            for part in certificate.strata.parts
        }  # fmt: skip
        mixed = certificate.for_mix(later)
        found["re-weighted"] = {"promised": mixed.value, "happened": float(misses.mean())}
    return found


def articles(data: Path, seed: int, quick: bool) -> dict[str, Any]:
    """Epub: of sessions with two articles at least, is the last one among twenty that follow from the others?"""
    with gzip.open(data / "epub_sessions.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    sessions: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["time"]):
        mine = sessions.setdefault(row["session"], [])
        if row["doc"] not in mine:
            mine.append(row["doc"])
    kept = [(name, docs) for name, docs in sessions.items() if len(docs) >= 2][:: 10 if quick else 1]
    learned, tested, later = (
        kept[int(a * len(kept)) : int(b * len(kept))] for a, b in ((0, 0.6), (0.6, 0.8), (0.8, 1))
    )
    ranker = gg.BasketRanker(random_state=seed).fit([(name, doc) for name, docs in learned for doc in docs])
    known = set(ranker.items_.tolist())

    def missed(part: list[tuple[str, list[str]]]) -> tuple[Any, Any]:
        """The loss of each session, and whether all that is visible of it is known to the ranker."""
        losses, names = [], []
        for _, docs in part:
            visible = [doc for doc in docs[:-1] if doc in known]
            listed = list(ranker.recommend_for(visible, 20, reasons=False)["item"])
            losses.append(float(docs[-1] not in listed))
            names.append("known" if len(visible) == len(docs) - 1 else "some article is new")
        return np.array(losses), np.array(names)

    (losses, names), (after, where) = missed(tested), missed(later)
    certificate = gg.certify_predictions(
        losses, np.zeros(len(losses)), loss="zero-one", alphabet=[0.0, 1.0], strata=names, delta=DELTA
    )
    ordinary = gg.certify_predictions(losses, np.zeros(len(losses)), loss="zero-one", alphabet=[0.0, 1.0], delta=DELTA)
    mixed = certificate.for_mix(where)
    return {
        "sessions": len(kept), "certified on": len(losses),
        "ordinary": {"promised": ordinary.value, "observed": ordinary.empirical, "happened": float(after.mean()),
                     "watch": alarm(ordinary.watch(alpha=ALPHA), [{"losses": after}])},
        "stratified": {
            part.name: {"promised": part.value, "tests": part.n_observations,
                        "happened": float(after[where == part.name].mean()) if (where == part.name).any() else None,
                        "share before": float((names == part.name).mean()),
                        "share after": float((where == part.name).mean())}
            for part in certificate.strata.parts
        },
        "re-weighted": {"promised": mixed.value, "happened": float(after.mean()),
                        "watch": alarm(certificate.watch(alpha=ALPHA), [{"losses": after, "strata": where}])},
    }  # fmt: skip


def main() -> None:
    args = arguments(__doc__ or "", "in_time")
    results: dict[str, Any] = {}
    for name, part in (("articles", articles), ("films", films)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = part(Path(args.data), args.seed, args.quick)
            print(name, results[name], flush=True)
    write(args, settings={"delta": DELTA, "alpha": ALPHA, "batch": BATCH}, results=results)


if __name__ == "__main__":
    main()
