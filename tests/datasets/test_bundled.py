"""The bundled sets come without a network, and are what their docstrings say."""

from __future__ import annotations

import numpy as np

from gingham.datasets import load_bible, load_elections


def test_shares_of_the_vote():
    votes = load_elections()
    shares = {(state, int(year)): share for (state, year), share in zip(votes.X, votes.y)}
    assert (shares["Vermont", 1936], shares["Mississippi", 1964]) == (56.44, 87.1)
    assert ("Alaska", 1956) not in shares  # a state since 1959
    assert len(shares) == len(votes.y) == 1333
    assert votes.y.min() >= 0
    assert votes.y.max() <= 100


def test_words_of_chapters():
    counts, chapters, words = load_bible()
    assert counts.shape == (len(chapters), len(words)) == (1189, 858)
    assert len(set(chapters)) == 1189
    assert np.min(counts.sum(axis=1)) > 0
    assert min((counts > 0).sum(axis=0)) >= 40
    assert counts[list(chapters).index("Revelation 22"), list(words).index("lamb")] == 2
