"""Numbers and nouns for people."""

from __future__ import annotations

import re
from collections.abc import Sequence


def plural(noun: str, n: int | float = 2) -> str:
    """A noun for n things: words, countries, boxes, users of user_id; names that are no plain words stay."""
    noun = re.sub(r"(?<=[a-z])(_id|_ID|Id|ID| id)$", "", noun)
    if n == 1 or not noun.isalpha() or len(noun) < 3:
        return noun
    low = noun.lower()
    if low.endswith(("s", "data", "people", "children", "men")) and not low.endswith(("ss", "us")):
        return noun
    if low.endswith("y") and low[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if low.endswith(("ss", "us", "x", "z", "ch", "sh")) else f"{noun}s"


def counted(n: int | float, noun: str) -> str:
    """ "1 word", "1,234 words"."""
    return f"{n:,.0f} {plural(noun, n)}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
