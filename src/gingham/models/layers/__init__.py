"""Sums of checkerboards: soft blocks and sampled chains."""

KIND = "layered"  # what the command line calls it
ABOUT = "checkerboards and averages that add up; the best prediction of numbers."
EXAMPLE = "gingham fit ratings.csv --model layered --axes user,movie --label rating"
