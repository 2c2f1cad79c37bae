"""Several views of the same objects (P3): PairwiseClusterAnalysis, KernelCCA, ExplanatoryClustering."""

KIND = "pairwise"  # what the command line calls it
