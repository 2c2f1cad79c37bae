"""What is guaranteed: how far the loss of a co-clustering on new data can be from what was observed."""

from gingham.certificates.certificate import Assumption, Certificate, Comparison
from gingham.certificates.certify import certify, certify_labels
from gingham.certificates.gain import certify_gain
from gingham.certificates.holdout import certify_predictions

__all__ = [
    "Assumption",
    "Certificate",
    "Comparison",
    "certify",
    "certify_gain",
    "certify_labels",
    "certify_predictions",
]
