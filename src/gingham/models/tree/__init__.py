"""Many modes whose clusters merge step by step (P0 §7): TreeCoClustering."""

KIND = "tree"  # what the command line calls it
