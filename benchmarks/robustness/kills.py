"""Kill -9 while a model is saved, and while every kind of model is fitted with --resume: nothing may be lost.

A child process saves one of two models over and over, or fits with a checkpoint every .02 s; it is killed at a random
moment, fifty times (ten times for kinds other than plain co-clustering). After every kill the model file must be whole
(one of the two models, or the old one), every checkpoint must be readable, and the fit that is resumed at the end must
write the file of the fit that nobody disturbed, byte for byte but for the order that it draws for progressive tests.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
import gingham as gg  # noqa: E402
from common import arguments, write  # noqa: E402
from gingham import storage  # noqa: E402
from gingham.cli.tables.kinds import KINDS as ALL_KINDS  # noqa: E402
from gingham.files import checkpoint_of  # noqa: E402
from killing import killed, seconds_of  # noqa: E402
from model_files import contents  # noqa: E402
from model_kinds import write_tables  # noqa: E402

FIGURES = {
    "kills in save": "save/kills",
    "whole files": "save/whole_files",
    "kills in a fit": "*/kills",
    "resumed fits equal": "*/equal_at_the_end",
}
FULL = ["--seed 8"]
SMALL_KINDS = "coclustering,graph"
SCALE = 8  # tables of this many times the size of those in the tests
EVERY = 0.02  # seconds between checkpoints
FORK = multiprocessing.get_context("fork")


def save_again_and_again(models: list, path: Path) -> None:
    while True:
        for model in models:
            model.save(path)


def kills_in_save(folder: Path, kills: int, rng: np.random.Generator) -> dict[str, int]:
    """Two models of about a megabyte, saved in turn to one file."""
    X = rng.integers(0, 20_000, (100_000, 2))
    y = rng.integers(1, 6, len(X))
    models, written = [], []
    for seed in (0, 1):
        model = gg.CoClusteringRegressor((4, 4), beta=1.0, alphabet=range(1, 6), random_state=seed, max_iter=2)
        models.append(model.fit(X, y))
        model.save(folder / f"{seed}.gingham")
        written.append((folder / f"{seed}.gingham").read_bytes())
    path = folder / "m.gingham"
    models[0].save(path)
    whole, changed, unfinished = 0, 0, 0
    last = written[0]
    for _ in range(kills):
        child = FORK.Process(target=save_again_and_again, args=(models, path))
        child.start()
        time.sleep(float(rng.uniform(0.0, 1.0)))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        now = path.read_bytes()
        whole += now in written
        gg.load(path)
        changed += now != last
        last = now
        parts = list(folder.glob(".*.part"))  # the kill came in the middle of writing
        unfinished += bool(parts)
        for part in parts:
            part.unlink()
    return {
        "kills": kills, "whole_files": whole, "files_that_changed_between_kills": changed, "in_mid_write": unfinished,
        "file_bytes": len(written[0]),
    }  # fmt: skip


def kills_in_fit(case, folder: Path, kills: int, rng: np.random.Generator) -> dict[str, float]:
    """A fit with --resume, killed again and again; it begins anew whenever it has come to its end."""
    more = ["--clusters", "auto"] if case.kind in ("cooccurrence", "graph") else []
    more += ["--starts", "5"] if case.kind in ("coclustering", "joint", "graph", "cooccurrence") else []
    case = replace(case, options=[*case.options, *more])
    whole, out = folder / "whole.gingham", folder / "m.gingham"
    assert seconds_of(case.fit(whole)) > 0  # compiled, and the server of processes started
    seconds = seconds_of(case.fit(out, "--checkpoint-every", str(EVERY)))
    expected = contents(whole)
    options = case.fit(out, "--checkpoint-every", str(EVERY), "--resume")
    facts = {"kills": 0, "ends": 0, "after_a_checkpoint": 0, "old_file_whole": 0}
    while facts["kills"] < kills:
        dead = killed(options, float(rng.uniform(0.45, 1.05)) * seconds)
        facts["kills"] += dead
        facts["ends"] += not dead
        facts["old_file_whole"] += dead and contents(out) == expected
        if checkpoint_of(out).exists():
            storage.read(checkpoint_of(out))  # whole
            facts["after_a_checkpoint"] += dead
    seconds_of(options)
    facts["equal_at_the_end"] = contents(out) == expected
    facts["seconds_of_a_fit"] = round(seconds, 3)
    return facts


def added(before: dict | None, now: dict) -> dict:
    """Counts of an earlier part and of this one together."""
    if before is None:
        return now
    same = ("file_bytes", "seconds_of_a_fit")
    return {k: v if k in same else before[k] and v if isinstance(v, bool) else before[k] + v for k, v in now.items()}


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=50, help="in save, and in fits of plain co-clustering")
    parser.add_argument("--other-kills", type=int, default=10, help="in fits of every other kind")
    parser.add_argument("--kinds", default=",".join(ALL_KINDS), help="kinds to fit, with commas; empty for none")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction, default=True)


def main() -> None:
    args = arguments(__doc__.split("\n")[0], "kills", more)
    kills = args.kills
    if args.quick:
        kills, args.other_kills, args.kinds = 2, 1, SMALL_KINDS
    rng = np.random.default_rng(args.seed)  # give every part its own --seed
    results: dict = {}
    if args.out.exists():  # parts measured before
        results = json.loads(args.out.read_text(encoding="utf-8"))["results"]
    others = min(kills, args.other_kills)
    settings = {"kills": kills, "other_kills": others, "checkpoint_every_s": EVERY, "scale": SCALE}
    if args.save:
        with tempfile.TemporaryDirectory() as name:
            results["save"] = added(results.get("save"), kills_in_save(Path(name), kills, rng))
        print("save", results["save"])
        write(args, settings=settings, results=results)
    with tempfile.TemporaryDirectory() as name:
        cases = write_tables(Path(name), scale=1 if args.quick else SCALE)
        for kind in [kind for kind in args.kinds.split(",") if kind]:
            folder = Path(name) / kind
            folder.mkdir()
            n_kills = kills if kind == "coclustering" else others
            results[kind] = added(results.get(kind), kills_in_fit(cases[kind], folder, n_kills, rng))
            print(kind, results[kind])
            write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
