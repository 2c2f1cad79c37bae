"""The page of a fitted model by itself: its reading's groups over the data that it remembers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gingham.cells import Mass, Quadratic, ZeroOne
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet, Sample
from gingham.models.vocabulary import COUNTS
from gingham.reading.measures import measure_named
from gingham.reading.values import Reading
from gingham.report.page import write
from gingham.report.summary import summarize


def write_model(model: Any, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write one self-contained page about a fitted model."""
    reading: Reading = model.reading_
    observed = model.observed()
    relation = observed.relations[0]
    pair = relation.pair(0, 1)
    places = relation.sides[:2]
    modes = tuple(observed.modes[place] for place in places)
    groups = [reading.sides[place].labels(reading.size[place]) for place in places]
    k = tuple(reading.size[place] for place in places)
    assign = tuple(np.eye(m)[labels] for labels, m in zip(groups, k))
    sums = pair.sums(groups[0], groups[1], (k[0], k[1]))
    measure = measure_named(relation.measure)
    words, zeros = None, False
    if relation.measure == "lift":
        sample = Sample(modes, (pair.rows, pair.columns), weights=pair.weight)
        posterior = Posterior(Structure.grid(modes), (Mass(),), assign, (measure.shown(sums)[0],))
        words, zeros = COUNTS, True
    elif relation.measure == "labels":
        letters = Alphabet.of(list(relation.labels), given=False)
        codes = np.asarray(pair.values, dtype=np.int32)
        sample = Sample(modes, (pair.rows, pair.columns), codes.astype(float), letters, codes, pair.weight)
        posterior = Posterior(Structure.grid(modes), (ZeroOne(letters),), assign, (sums.argmax(axis=-1),))
    else:
        sample = Sample(
            modes, (pair.rows, pair.columns), np.asarray(pair.values, dtype=np.float64), weights=pair.weight
        )
        mean = sums[..., 1].sum() / max(float(sums[..., 0].sum()), 1e-300)
        answers = (sums[..., 1] + mean) / (sums[..., 0] + 1.0)
        posterior = Posterior(Structure.grid(modes), (Quadratic(),), assign, (answers,))
    errors = {} if reading.errors is None else {score.name: score.value for score in reading.errors.scores}
    names = [[cluster.name for cluster in reading.sides[place].cut(m)] for place, m in zip(places, k)]
    write(
        summarize(
            posterior,
            sample,
            title=title or f"What {type(model).__name__} found",
            label=relation.label,
            facts={"observed": reading.n_observed},
            errors=errors,
            words=words,
            cluster_names=(names[0], names[1]),
            zeros=zeros,
            notes=(reading.verdict, reading.why),
        ),
        path,
    )
