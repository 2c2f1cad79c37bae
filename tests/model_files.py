"""What a model file holds, to compare two fits with."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

ORDER = re.compile(rb'"order": \d+')  # of progressive tests, drawn afresh by every fit


def contents(path: Path) -> dict[str, bytes]:
    """The parts of a model file by name, without the order that the fit has drawn for progressive tests."""
    with zipfile.ZipFile(path) as archive:
        return {name: ORDER.sub(b'"order": null', archive.read(name)) for name in archive.namelist()}
