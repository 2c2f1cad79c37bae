"""scikit-learn without pandas and scipy.stats: it imports both at its beginning, and no command asks for them.

Importing this module before scikit-learn saves a good half second of every command. Both are hidden while scikit-learn
is imported for the first time; whoever asks for one of them later gets it.
"""

from __future__ import annotations

import sys
from types import ModuleType

HIDDEN: dict[str, ModuleType | None] = {"pandas": None, "scipy.stats": ModuleType("scipy.stats")}


def import_scikit_learn() -> None:
    """Import it lightly; a version that needs what is hidden is imported as a whole when it is next asked for."""
    hidden = {name: stub for name, stub in HIDDEN.items() if name not in sys.modules}
    sys.modules.update(hidden)  # type: ignore[arg-type]
    try:
        import sklearn.base  # noqa: F401
    except ImportError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
            del sys.modules[name]
    finally:
        for name in hidden:
            del sys.modules[name]


if "sklearn" not in sys.modules:
    import_scikit_learn()
