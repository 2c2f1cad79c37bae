"""Ranking from baskets: which items a person will want next, and why."""
