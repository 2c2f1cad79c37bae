"""Clusters that generalise to unobserved features (P4): InformationClustering."""

KIND = "information"  # what the command line calls it
