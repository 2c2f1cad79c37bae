"""The lowest versions that pyproject.toml declares, as requirements of pip: `make test-lowest` installs them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(extras: tuple[str, ...] = ("cli", "plot", "report", "graph", "dask", "test")) -> list[str]:
    """ "numpy==1.26" of "numpy>=1.26", for what gingham needs and for some of its extras."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [line.replace(">=", "==") for line in wanted if not re.match(r"gingham\b", line)]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
