"""Damaged and odd files, and signals at random moments: every one ends with a sentence, an exit code and nothing lost.

One byte of a model file is changed again and again (a file that still loads must be the same model), model files are
cut, filled and mixed, Parquet files are damaged, CSV files are odd in every way that came to mind, and a fit is
interrupted by SIGINT and SIGTERM at random moments, imports included. What counts as a failure: an exit code other than
0, 2 and the signal's, a traceback, a panic, "Exception ignored", a part of a file that is left over, a lost checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
import gingham as gg  # noqa: E402
from common import arguments, write  # noqa: E402
from gingham import storage  # noqa: E402
from gingham.cli.app import run  # noqa: E402
from gingham.files import checkpoint_of  # noqa: E402
from model_files import contents  # noqa: E402
from model_kinds import write_tables  # noqa: E402

FIGURES = {
    "one byte changed": "one byte/tried",
    "other damage": "model files/tried",
    "Parquet": "parquet/tried",
    "CSV": "csv/tried",
    "SIGINT": "SIGINT/tried",
    "SIGTERM": "SIGTERM/tried",
    "failures": "*/failures",
}
FULL = ["--seed 18"]
WRONG = ("Traceback", "Exception ignored", "panicked", "Internal error", "stack backtrace", "slice")
KINDS = ("coclustering", "graph", "layered", "joint", "cooccurrence", "tree")


@contextlib.contextmanager
def captured(folder: Path) -> Iterator[Callable[[], str]]:
    """What is written to standard error, by Python or by compiled code."""
    file, own, out = (folder / "stderr").open("w+b"), os.dup(2), os.dup(1)
    sys.stderr.flush()
    sys.stdout.flush()
    os.dup2(file.fileno(), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        yield lambda: (sys.stderr.flush(), (folder / "stderr").read_text("utf-8", "replace"))[1]
    finally:
        sys.stdout.flush()
        os.dup2(own, 2)
        os.dup2(out, 1)
        os.close(own)
        os.close(out)
        file.close()


class Outcomes:
    """How the tries of one campaign ended."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.failures: list[str] = []

    def add(self, code: int, said: str, what: str, allowed: tuple[int, ...] = (0, 2)) -> None:
        self.ends[f"exit code {code}"] += 1
        sentence = code != 2 or "Error: " in said or "Usage: " in said
        if code not in allowed or any(word in said for word in WRONG) or not sentence:
            self.failures.append(f"{what}: exit code {code}: {said[:300]}")

    def facts(self) -> dict[str, object]:
        return {
            "tried": sum(self.ends.values()), "ends": dict(sorted(self.ends.items())),
            "failures": len(self.failures), "examples_of_failures": self.failures[:5],
        }  # fmt: skip


def command(folder: Path, *words: object) -> tuple[int, str]:
    """Run a command in this process: its exit code, and what it said."""
    with captured(folder) as said:
        code = run([str(word) for word in words])
        return code, said()


def changed(data: bytes, rng: random.Random) -> bytes:
    """Bytes damaged in one of many ways."""
    new = bytearray(data)
    at = rng.randrange(len(new))
    match rng.randrange(7):
        case 0:
            new[at] ^= rng.randrange(1, 256)
        case 1:
            for _ in range(rng.randrange(2, 40)):
                new[rng.randrange(len(new))] ^= rng.randrange(1, 256)
        case 2:
            del new[at:]
        case 3:
            del new[at : at + rng.randrange(1, 300)]
        case 4:
            new[at : at + 60] = bytes(len(new[at : at + 60]))
        case 5:
            new[at:at] = rng.randbytes(rng.randrange(1, 50))
        case _:
            other = rng.randrange(len(new))
            new[at : at + 40], new[other : other + 40] = new[other : other + 40], new[at : at + 40]
    return bytes(new)


def fitted_models(folder: Path) -> list[Path]:
    """One small model of several kinds."""
    cases, models = write_tables(folder), []
    for kind in KINDS:
        out = folder / f"{kind}.gingham"
        code, said = command(folder, *cases[kind].fit(out))
        assert code == 0, said
        models.append(out)
    return models


def one_byte(folder: Path, models: list[Path], tries: int, rng: random.Random) -> dict[str, object]:
    """One byte changed; a file that still loads says the same."""
    found, refused, same = Outcomes(), 0, 0
    whole = [model.read_bytes() for model in models]
    states = [_saved(model, folder) for model in models]
    path = folder / "damaged.gingham"
    for _ in range(tries):
        number = rng.randrange(len(models))
        data = bytearray(whole[number])
        at = rng.randrange(len(data))
        data[at] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        code, said = command(folder, "describe", path, "--items", "--out", folder / "items.csv")
        what = f"{models[number].name}, byte {at}"
        found.add(code, said, what)
        refused += code == 2
        if code == 0:
            same += _saved(path, folder) == states[number]
            if _saved(path, folder) != states[number]:
                found.failures.append(f"{what}: loaded as another model")
    return {**found.facts(), "refused": refused, "loaded_as_the_same_model": same}


def _saved(path: Path, folder: Path) -> bytes:
    gg.load(path).save(folder / "again.gingham")
    return (folder / "again.gingham").read_bytes()


def model_files(folder: Path, models: list[Path], tries: int, rng: random.Random) -> dict[str, object]:
    """Model files damaged in other ways."""
    found, path = Outcomes(), folder / "damaged.gingham"
    for _ in range(tries):
        model = rng.choice(models)
        path.write_bytes(changed(model.read_bytes(), rng))
        found.add(*command(folder, "describe", path, "--items", "--out", folder / "items.csv"), model.name)
    return found.facts()


FIT = ("--axes", "user,movie", "--label", "rating", "--clusters", "2,2", "--beta", "1", "--max-iter", "3", "-q")


def ratings(n_rows: int = 300) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": [i % 20 for i in range(n_rows)],
            "movie": [f"film {i % 15}" for i in range(n_rows)],
            "rating": [1 + (i * i) % 5 for i in range(n_rows)],
        }
    )


def parquet(folder: Path, tries: int, rng: random.Random) -> dict[str, object]:
    """Damaged Parquet files; polars panics over some, and ends its process over others."""
    found, path, stream = Outcomes(), folder / "t.parquet", io.BytesIO()
    ratings().write_parquet(stream, compression=rng.choice(["zstd", "snappy", "uncompressed"]))
    good = stream.getvalue()
    for _ in range(tries):
        path.write_bytes(changed(good, rng))
        found.add(*command(folder, "fit", path, *FIT, "--out", folder / "m.gingham"), "parquet")
    return found.facts()


ODD = [
    b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"null", b"NaN", b"inf",
    b"-inf", b"1e308", b"-1e308", b"1e999", b"9" * 40, b"\t", b";", b"\\", b"-", b'"a\nb"', b"true", b" ", b"\x1a",
    "é".encode(), "\u202e".encode(), b"\x1b[31m", b"x" * 70_000, b"=1+1", b"017", b"17.0", b"0x11", b"1_000",
    b"user,movie,rating\n", b",,", b"'", b"#", b"2020-01-01", b"\xed\xa0\x80",
]  # fmt: skip


def csv(folder: Path, tries: int, rng: random.Random) -> dict[str, object]:
    """Odd CSV files: pieces that do not belong there, damage, other separators, line ends and encodings."""
    found, path = Outcomes(), folder / "t.csv"
    good = ratings(rng.choice([1, 2, 60])).write_csv().encode()
    for _ in range(tries):
        data = bytearray(good if rng.random() < 0.8 else ratings(rng.randrange(1, 4)).write_csv().encode())
        for _ in range(rng.choice([1, 1, 2, 5, 30])):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.choice([0, 0, 1, 8])] = rng.choice(ODD)
        match rng.randrange(8):
            case 0:
                data = bytearray(data.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\n", b"\0"])))
            case 1:
                data = bytearray(data.replace(b",", rng.choice([b";", b"\t", b",,", b"|"])))
            case 2:
                with contextlib.suppress(UnicodeDecodeError):
                    data = bytearray(bytes(data).decode().encode(rng.choice(["utf-16", "utf-32", "utf-8-sig"])))
            case 3:
                data = bytearray(changed(bytes(data) or b" ", rng))
        path.write_bytes(data)
        found.add(*command(folder, "fit", path, *FIT, "--out", folder / "m.gingham"), "csv")
    return found.facts()


def signals(folder: Path, number: signal.Signals, tries: int, rng: random.Random) -> dict[str, object]:
    """A fit in a process of its own, interrupted at moments between its start and its end."""
    found, kept, models = Outcomes(), 0, 0
    ratings(4_000).write_csv(folder / "t.csv")
    out = folder / "signal.gingham"
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "6,5", "--beta", "1", "--starts", "40"]
    fit = [sys.executable, "-m", "gingham", "fit", str(folder / "t.csv"), *options, "--checkpoint-every", "0.05"]
    fit += ["--out", str(out)]
    began = time.monotonic()
    subprocess.run(fit, check=True, capture_output=True)
    whole, expected = time.monotonic() - began, contents(out)
    moments = sorted(rng.uniform(0.0, 1.05) * whole for _ in range(tries))
    for moment in moments:
        out.unlink(missing_ok=True)
        checkpoint_of(out).unlink(missing_ok=True)
        child = subprocess.Popen(fit, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(moment)
        there = checkpoint_of(out).exists()
        child.send_signal(number)
        _, said = child.communicate()
        what = f"{number.name} after {moment:.2f} of {whole:.2f} s"
        found.add(child.returncode, said.decode("utf-8", "replace"), what, (0, 128 + number))
        if checkpoint_of(out).exists():
            storage.read(checkpoint_of(out))  # whole
            kept += 1
        elif there and not (out.exists() and not gg.load(out).interrupted_):
            found.failures.append(f"{what}: the checkpoint is gone")
        if list(folder.glob(".*.part")):
            found.failures.append(f"{what}: a part is left over")
        models += out.exists() and gg.load(out).interrupted_
    subprocess.run([*fit, "--resume"], check=True, capture_output=True)
    if contents(out) != expected:
        found.failures.append("the resumed fit is another one")
    return {**found.facts(), "checkpoints_kept": kept, "models_so_far": models, "seconds_of_the_fit": round(whole, 2)}


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=int, default=2000, help="model files with one byte changed")
    parser.add_argument("--models", type=int, default=500, help="model files damaged in other ways")
    parser.add_argument("--parquet", type=int, default=100)
    parser.add_argument("--csv", type=int, default=200)
    parser.add_argument("--sigint", type=int, default=40, help="moments")
    parser.add_argument("--sigterm", type=int, default=20, help="moments")


def main() -> None:
    args = arguments(__doc__.split("\n")[0], "files", more)
    if args.quick:
        args.bytes, args.models, args.parquet, args.csv, args.sigint, args.sigterm = 60, 20, 5, 20, 2, 1
    rng = random.Random(args.seed)
    results: dict[str, object] = {}
    settings = {"bytes": args.bytes, "models": args.models, "parquet": args.parquet, "csv": args.csv,
                "sigint": args.sigint, "sigterm": args.sigterm, "kinds": KINDS}  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = fitted_models(folder)
        campaigns: dict[str, Callable[[], dict[str, object]]] = {
            "one byte": lambda: one_byte(folder, models, args.bytes, rng),
            "model files": lambda: model_files(folder, models, args.models, rng),
            "parquet": lambda: parquet(folder, args.parquet, rng),
            "csv": lambda: csv(folder, args.csv, rng),
            "SIGINT": lambda: signals(folder, signal.SIGINT, args.sigint, rng),
            "SIGTERM": lambda: signals(folder, signal.SIGTERM, args.sigterm, rng),
        }
        for title, campaign in campaigns.items():
            results[title] = campaign()
            print(title, results[title], flush=True)
            write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
