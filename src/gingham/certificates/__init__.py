"""What is guaranteed: how far the loss of a co-clustering on new data can be from what was observed."""

from gingham.certificates.assumptions import Assumption
from gingham.certificates.audit import Audit, audit, audit_rankings, hot_or_cold
from gingham.certificates.certificate import Certificate, Comparison
from gingham.certificates.certify import certify
from gingham.certificates.holdout import certify_predictions
from gingham.certificates.labels import equation15
from gingham.certificates.population import held_out_part, transductive, whole_population
from gingham.certificates.progressive import Progressive
from gingham.certificates.ranking import RankingCertificate, certify_ranking
from gingham.certificates.selection import Propensity, SelectionEffect, selection_effect
from gingham.certificates.strata import Strata, Stratum
from gingham.certificates.watch import Watch

__all__ = [
    "Assumption",
    "Audit",
    "Certificate",
    "Comparison",
    "Progressive",
    "Propensity",
    "RankingCertificate",
    "SelectionEffect",
    "Strata",
    "Stratum",
    "Watch",
    "audit",
    "audit_rankings",
    "certify",
    "certify_predictions",
    "certify_ranking",
    "equation15",
    "held_out_part",
    "hot_or_cold",
    "selection_effect",
    "transductive",
    "whole_population",
]
