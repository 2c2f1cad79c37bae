"""One mode that is met twice (P1): GraphClustering."""

KIND = "graph"  # what the command line calls it
