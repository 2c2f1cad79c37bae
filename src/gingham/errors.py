"""What gingham raises and warns: sentences that name the culprit and say what to do."""

from __future__ import annotations


class GinghamError(ValueError):
    """Something in the input or the request cannot be served; the message says what and how to mend it."""


class RefusedCertificate(GinghamError):
    """A guarantee was asked for that no theorem gives in this case."""


class GinghamWarning(UserWarning):
    """Something was done that the caller should know of."""


class UnseenItemsWarning(GinghamWarning):
    """Ids that were not in the training data are predicted as one more item of their mode would fall."""


class AdviceWarning(GinghamWarning):
    """The fit went through, and may not be what was meant: labels look like counts, a side has one row an item, the
    model is not better than a baseline, nothing was found on a side.
    """


class InterruptedWarning(GinghamWarning):
    """The work was interrupted; the best solution so far was returned."""
