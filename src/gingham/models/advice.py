"""What a fit should say of its data: labels that count, sides of which nothing can be learned."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from gingham.arrays import Floats
from gingham.data import Sample
from gingham.errors import AdviceWarning
from gingham.reading.look import FEW_ROWS, SEVERAL, look_like_counts, says_alone


def advise(sample: Sample, counts_are_meant: bool = False) -> None:
    """Warn (`AdviceWarning`) of tuples that the model may not be meant for; what is on a GPU is not looked at."""
    if not sample.on_device:
        names = [mode.name for mode in sample.modes]
        warn_of(advice_on(names, sample.shape, sample.n_rows, None if counts_are_meant else _numbers(sample)))


def warn_of(sentences: Sequence[str]) -> None:
    """Say sentences as `AdviceWarning`."""
    for sentence in sentences:
        warnings.warn(sentence, AdviceWarning, stacklevel=4)


def _numbers(sample: Sample) -> Floats | None:
    named = sample.alphabet is not None and not sample.alphabet.numeric
    return None if sample.labels is None or named else np.asarray(sample.labels)


def advice_on(names: Sequence[str], n_items: Sequence[int], n_rows: int, labels: Floats | None = None) -> list[str]:
    """Sentences on sides with about one row an item, and on labels that look like counts."""
    said = []
    if len(names) > 1 and n_rows >= FEW_ROWS:
        said += [says_alone(name, n, n_rows) for name, n in zip(names, n_items) if n_rows < SEVERAL * n]
    if labels is not None and n_rows >= FEW_ROWS and look_like_counts(labels):
        said.append(
            f"The labels look like counts, from {labels.min():,.0f} to {labels.max():,.0f} with half of them up to "
            f"{np.median(labels):,.0f}: a few large ones decide what is predicted. CoOccurrenceClustering "
            "(--model cooccurrence, --weight) is for counts; or take their logarithms."
        )
    return said
