"""Several views of the same objects (P3): PairwiseClusterAnalysis, KernelCCA, ExplanatoryClustering."""
