"""Sums of checkerboards: soft blocks and sampled chains."""
