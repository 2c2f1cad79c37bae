"""One mode that is met twice (P1): GraphClustering."""

KIND = "graph"  # what the command line calls it
ABOUT = "groups of nodes by whom they are linked with."
EXAMPLE = "gingham fit edges.csv --model graph --axes from,to"
