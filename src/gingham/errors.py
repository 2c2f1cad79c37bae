"""What gingham raises and warns: sentences that name the culprit and say what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from numbers import Integral

MOST_NAMES = 20_000  # among which a near one is looked for


def suggestion(name: object, known: Iterable[object]) -> str:
    """ " Did you mean 'rating'?" where one of the known names is near; nothing otherwise."""
    names = {str(one).casefold(): str(one) for one in islice(known, MOST_NAMES)}
    said = str(name).casefold()
    near = get_close_matches(said, names, 1) or [one for one in names if len(said) > 2 and said in one][:1]
    return f" Did you mean {names[near[0]]!r}?" if near else ""


def positive_integer(name: str, value: object, otherwise: str = "") -> int:
    """The value of an argument that must be an integer ≥ 1; ``otherwise`` says what else it may be (", or 'auto'")."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise GinghamError(f"{name}={value!r} must be an integer ≥ 1{otherwise}.")
    return int(value)


def one_of(name: str, value: object, choices: Iterable[str], otherwise: str = "") -> None:
    """Refuse a value that is none of the choices; ``otherwise`` says what else it may be (", or labels")."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise GinghamError(
            f"{name}={value!r} is unknown; choose one of {', '.join(known)}{otherwise}.{suggestion(value, known)}"
        )


def strict_share(name: str, value: float) -> None:
    """Refuse a number that does not lie strictly between 0 and 1."""
    if not 0 < value < 1:
        raise GinghamError(f"{name}={value} must lie strictly between 0 and 1.")


class GinghamError(ValueError):
    """The input or the request is not acceptable; the message says what is wrong and how to put it right.

    Examples
    --------
    >>> import gingham as gg
    >>> try:
    ...     gg.load("no such file")
    ... except gg.GinghamError as error:
    ...     print(error)
    There is no model file 'no such file'.
    """


class RefusedCertificate(GinghamError):
    """A guarantee was requested that no theorem gives in this case.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> try:
    ...     gg.certify(model, X, y, predictor="mean", lower=True)
    ... except gg.RefusedCertificate as error:
    ...     print("refused")
    refused
    """


class GinghamWarning(UserWarning):
    """Something happened that the caller should know about.

    Examples
    --------
    >>> import warnings
    >>> import gingham as gg
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gg.GinghamWarning)  # stop at the first thing that you should know of
    """


class UnseenItemsWarning(GinghamWarning):
    """Ids that were not in the training data get the memberships that one more item of their side would have.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> import warnings
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", gg.UnseenItemsWarning)
    ...     prediction = model.predict([[0, 99]])  # item 99 was never seen
    >>> caught[0].category.__name__
    'UnseenItemsWarning'
    """


class AdviceWarning(GinghamWarning):
    """The fit succeeded but may not be what was intended: labels look like counts, items occur in one row each, the
    model is not better than a baseline, or nothing was found on a side.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import gingham as gg
    >>> rng = np.random.default_rng(0)
    >>> X, plays = rng.integers(0, 30, (600, 2)), np.floor(np.exp(rng.normal(3, 1.5, 600)))
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     model = gg.CoClusteringRegressor(2, beta=0.01, random_state=0).fit(X, plays)
    >>> said[0].category.__name__, str(said[0].message)[:28]
    ('AdviceWarning', 'The labels look like counts,')
    """


class InterruptedWarning(GinghamWarning):
    """The work was interrupted; the best solution so far was returned."""
