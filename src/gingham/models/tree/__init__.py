"""Many modes whose clusters merge step by step (P0 §7): TreeCoClustering."""
