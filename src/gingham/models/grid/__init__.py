"""Checkerboards over any number of modes (P0 §4): CoClusteringRegressor and CoClusteringClassifier."""
