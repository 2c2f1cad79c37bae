"""A long fit in several runs of a script: each takes up what the one before kept, and stops after some seconds.

The result is that of one run; what was begun and not kept is done again, and counts in the CPU seconds.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint, kept_in
from gingham.fitting.interruption import end_if_interrupted, interrupt, interruptible


@contextmanager
def in_parts(file: Path | None, name: str, seconds: int) -> Iterator[tuple[float, Checkpoint]]:
    """A fit inside goes on from ``file`` and stops after so many seconds, exit code 3; without a file, an ordinary run.

    Yields the CPU seconds of the parts before and the checkpoint to hand to the fit. ``name`` says what is fitted:
    another fit's file is refused.
    """
    if file is None:
        yield 0.0, NO_CHECKPOINT
        return
    clock = file.with_name(file.name + ".seconds")
    before = json.loads(clock.read_text()) if clock.exists() else 0.0
    start = time.process_time()

    signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(seconds)
    try:
        with interruptible(), kept_in(file, name, resume=True, every=60) as (checkpoint, _):
            yield before, checkpoint
            end_if_interrupted()
    except KeyboardInterrupt:
        clock.write_text(json.dumps(before + time.process_time() - start))
        sys.exit(3)
    signal.alarm(0)
    for each in (file, clock):
        each.unlink(missing_ok=True)
