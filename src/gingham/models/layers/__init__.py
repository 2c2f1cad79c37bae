"""Sums of checkerboards: soft blocks and sampled chains."""

KIND = "layered"  # what the command line calls it
