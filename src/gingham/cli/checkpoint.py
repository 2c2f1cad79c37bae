"""The checkpoint file beside a model file, for ``gingham fit --resume``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gingham


def checkpoint_of(model: Path) -> Path:
    """The checkpoint file of a model file."""
    return model.with_name(model.name + ".checkpoint")


def identity(fingerprint: str, settings: dict[str, Any]) -> str:
    """Equal for equal data and settings."""
    facts = json.dumps([gingham.__version__, fingerprint, settings], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def forget(path: Path) -> None:
    """Remove a checkpoint that is no longer needed."""
    path.unlink(missing_ok=True)
