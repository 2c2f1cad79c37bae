"""Several tables that share modes (P0 eqs. 46-48): JointCoClustering."""

KIND = "joint"  # what the command line calls it
ABOUT = "several tables that share a side: ratings and genres."
EXAMPLE = "gingham fit ratings.csv --model joint --axes user,movie --label rating -r movie,genre=has:genres.csv"
