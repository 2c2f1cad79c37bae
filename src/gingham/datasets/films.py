"""Made-up film ratings that ship with the library: a first data set to try things on, without a network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TITLES = {
    "romance": "A Summer in Verona|Letters to Clara|The Second Dance|Paris at Dawn|Under the Linden Tree|The Wedding "
    "Guest|Always, Eleanor|The Last Waltz Home|Rain on Sunday|Two for the Ferry|Close to You|The Violin Lesson",
    "action": "Iron Harbour|Full Throttle|The Seventh Convoy|Night Raid|Steel Horizon|Zero Hour Express|Blackout "
    "Protocol|The Long Pursuit|Crossfire Canyon|Deadline Tokyo|Red Falcon|Ten Minutes to Impact",
    "family": "The Dragon Next Door|Pip and the Moon|A Bear Called Oskar|The Secret Orchard|Captain Biscuit|Three "
    "Brave Mice|The Paper Boat|Snow Day|The Clockmaker's Cat|Lighthouse Summer|The Red Balloon|The Whispering Woods",
    "documentary": "Glacier|The Bee Year|Voices of the Delta|Coal Town|Inside the Atlas|The Last Cod|Seeds|Night Sky|"
    "Rivers of Stone|The Archive|Hidden Forests|Salt",
}
TASTES = np.array([[4.4, 2.2, 3.6, 3.0], [2.0, 4.3, 2.9, 3.1], [3.1, 2.6, 2.4, 4.4]])  # groups of viewers × genres
N_VIEWERS, N_RATINGS = 240, 5000


class Films(NamedTuple):
    """Two tables by their columns: who gave how many stars to which film, and the films' titles and genres."""

    ratings: dict[str, list[object]]
    films: dict[str, list[object]]


def load_films() -> Films:
    """5,000 ratings from 1 to 5 of 48 invented films by 240 invented viewers, the same ones on every call.

    Three groups of viewers rate four genres differently; films and viewers differ in their averages, too.

    Examples
    --------
    >>> import polars as pl
    >>> from gingham.datasets import load_films
    >>> ratings = pl.DataFrame(load_films().ratings)
    >>> ratings.columns, ratings.height
    (['viewer', 'film', 'rating'], 5000)
    """
    rng = np.random.default_rng(7)
    titles = [(title, genre) for genre, listed in TITLES.items() for title in listed.split("|")]
    genres = np.repeat(np.arange(len(TITLES)), len(titles) // len(TITLES))
    pairs = rng.choice(N_VIEWERS * len(titles), N_RATINGS, replace=False)
    viewer, film = np.divmod(pairs, len(titles))
    level = TASTES[viewer % len(TASTES), genres[film]] + rng.normal(0, 0.3, N_VIEWERS)[viewer]
    level += rng.normal(0, 0.3, len(titles))[film] + rng.normal(0, 0.6, N_RATINGS)
    codes = [f"f{number:02d}" for number in range(1, len(titles) + 1)]
    return Films(
        {
            "viewer": [f"v{number + 1:03d}" for number in viewer.tolist()],
            "film": [codes[number] for number in film.tolist()],
            "rating": np.clip(np.round(level), 1, 5).astype(np.int64).tolist(),
        },
        {"film": [*codes], "title": [title for title, _ in titles], "genre": [genre for _, genre in titles]},
    )
