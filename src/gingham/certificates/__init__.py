"""What is guaranteed: how far the loss of a co-clustering on new data can be from what was observed."""

from gingham.certificates.certificate import Assumption, Certificate, Comparison
from gingham.certificates.certify import Stream, certify, certify_stream
from gingham.certificates.density import certify_density
from gingham.certificates.excess_loss import certify_gain
from gingham.certificates.holdout import certify_folds, certify_predictions
from gingham.certificates.partitions import certify_labels, certify_partition, compare_partitions, equation15
from gingham.certificates.population import held_out_part, transductive, whole_population
from gingham.certificates.progressive import Progressive
from gingham.certificates.ranking import RankingCertificate, certify_ranking

__all__ = [
    "Assumption",
    "Certificate",
    "Comparison",
    "Progressive",
    "RankingCertificate",
    "Stream",
    "certify",
    "certify_density",
    "certify_folds",
    "certify_gain",
    "certify_labels",
    "certify_partition",
    "certify_predictions",
    "certify_ranking",
    "certify_stream",
    "compare_partitions",
    "equation15",
    "held_out_part",
    "transductive",
    "whole_population",
]
