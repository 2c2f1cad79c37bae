"""Ranking from baskets: which items a person will want next, and why."""

KIND = "ranking"  # what the command line calls it
