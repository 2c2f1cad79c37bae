"""Ranking from baskets: which items a person will want next, and why."""

KIND = "ranking"  # what the command line calls it
ABOUT = "what each one wants next, from who took what."
EXAMPLE = "gingham fit purchases.csv --model ranking --axes customer,product"
