"""Checkerboards over any number of modes (P0 §4): CoClusteringRegressor and CoClusteringClassifier."""

KIND = "coclustering"  # what the command line calls it
ABOUT = "one checkerboard that predicts labels; guarantees for the rows it learned from."
EXAMPLE = "gingham fit votes.csv --model coclustering --axes member,bill --label vote"
