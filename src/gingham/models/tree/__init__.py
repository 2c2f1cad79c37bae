"""Many modes whose clusters merge step by step (P0 §7): TreeCoClustering."""

KIND = "tree"  # what the command line calls it
ABOUT = "three sides or more, whose clusters merge step by step."
EXAMPLE = "gingham fit table.csv --model tree --axes a,b,c,d --label y --merges '0,1,3;2,3,3'"
