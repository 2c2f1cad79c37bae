"""One mode that is met twice (P1): GraphClustering."""
