"""The checkpoint file beside a model file, for ``gingham fit --resume``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gingham
from gingham.errors import GinghamError


def checkpoint_of(model: Path) -> Path:
    """The checkpoint file of a model file."""
    return model.with_name(model.name + ".checkpoint")


def need_own(checkpoint: Path) -> None:
    """Refuse to write a checkpoint in the place of a file that is none: nobody has named it as output."""
    if checkpoint.exists() and checkpoint.stat().st_size:
        with checkpoint.open("rb") as stream:
            if stream.read(2) != b"PK":  # every file that gingham writes is a zip
                raise GinghamError(
                    f"{str(checkpoint)!r} is where the fit keeps what it has so far, and that file is something else. "
                    "Move it, or give the model another name with --out."
                )


def identity(facts: dict[str, Any]) -> str:
    """Equal for equal facts of a fit: its data, with types and weights, and its options."""
    return hashlib.sha256(json.dumps([gingham.__version__, facts], sort_keys=True, default=str).encode()).hexdigest()


def forget(path: Path) -> None:
    """Remove a checkpoint that is no longer needed."""
    path.unlink(missing_ok=True)
