"""Several views of the same objects (P3): PairwiseClusterAnalysis, KernelCCA, ExplanatoryClustering."""

KIND = "pairwise"  # what the command line calls it
ABOUT = "what several views of the same objects have in common."
EXAMPLE = "gingham fit measurements.csv --model pairwise --axes 'x1,x2,x3;y1,y2'"
