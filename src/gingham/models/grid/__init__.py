"""Checkerboards over any number of modes (P0 §4): CoClusteringRegressor and CoClusteringClassifier."""

KIND = "coclustering"  # what the command line calls it
