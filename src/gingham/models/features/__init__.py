"""Clusters that generalise to unobserved features (P4): InformationClustering."""
