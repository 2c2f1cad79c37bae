"""Files that are written whole or not at all, and never in the place of an input, a device or what a link points to."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from gingham.errors import GinghamError, suggestion

Name = str | os.PathLike[str]
FORMAT = "gingham-model"  # how the manifest of every file begins that gingham.storage writes
MANIFEST = "manifest.json"
CHECKPOINT = "Checkpoint"  # the kind of file that a fit keeps


def need_target(path: Name, *inputs: Name) -> None:
    """Refuse a file that cannot be written, or must not be: before minutes of work rather than after them.

    Only a plain file that is none of the ``inputs`` ("-" is standard input) is ever replaced. Whether the folder takes
    a new file is tried out.
    """
    target = Path(path)
    shown = repr(str(target))
    try:
        _need_plain_file(target, shown)
        if any(_same(target, name) for name in inputs):
            raise GinghamError(
                f"{shown} is also an input of this command and would be overwritten. Choose another output name."
            )
        handle, part = _begun(target)
        os.close(handle)
        _forget(part)
    except OSError as error:
        raise GinghamError(f"{shown} cannot be written: {error.strerror}.") from None


def _need_plain_file(target: Path, shown: str) -> None:
    if target.is_symlink():
        where = os.fspath(target.readlink())
        raise GinghamError(f"{shown} is a link to {where!r}: name the file itself, or remove the link.")
    if target.is_dir():
        raise GinghamError(f"{shown} is a folder; give the name of a file to write.")
    if not target.parent.is_dir():
        raise GinghamError(f"The folder {str(target.parent)!r} does not exist.")
    if not target.exists():
        return
    if not target.is_file():
        raise GinghamError(f"{shown} is a device or a pipe. Name a regular file to write.")
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise GinghamError(f"{shown} is write-protected. Change its permissions, or choose another name.")


def _same(target: Path, source: Name) -> bool:
    """Whether two names are one file, through links of either kind."""
    try:
        read = os.fstat(0) if source == "-" else Path(source).stat()
        return os.path.samestat(read, target.stat())
    except OSError:
        return False


def _begun(target: Path) -> tuple[int, Path]:
    """A new file beside the target, open for writing, with the permissions that the user's umask leaves."""
    with contextlib.suppress(FileNotFoundError):
        target.lstat()  # a name that is too long for the system is refused here: the new file's own is short
    part = target.with_name(f".{target.name[:32]}.{secrets.token_hex(6)}.part")
    atomic.unfinished.add(part)  # before it is there: Ctrl-C may come at any moment
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), part


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    atomic.unfinished.discard(part)


def need_table(source: str) -> None:
    """Refuse a table that is not there; "-" is standard input, and a database is asked when it is read."""
    if source == "-" or "://" in source:
        return
    if Path(source).is_dir():
        raise GinghamError(f"{source!r} is a folder; give a file.")
    if not Path(source).exists():
        raise GinghamError(f"There is no file {source!r}.{_near(source)}")


def need_model(source: Name) -> None:
    """Refuse a model file that is not there."""
    if not Path(source).is_file():
        raise GinghamError(f"There is no model file {os.fspath(source)!r}.{_near(source)}")


def _near(name: Name) -> str:
    """A file of the same folder whose name is nearly this one."""
    folder = Path(name).parent
    try:
        return suggestion(name, (folder / one for one in os.listdir(folder)))  # noqa: PTH208
    except OSError:
        return ""


class atomic:
    """A binary stream whose content replaces ``path`` only when all of it has been written.

    A file that is replaced hands on its permissions. What `need_target` refuses is refused here as well.

    Attributes
    ----------
    unfinished : set of Path
        What is being written at this moment, for whoever ends the process in the middle of it. What an interruption
        leaves of it in spite of everything goes when the process ends.
    """

    unfinished: ClassVar[set[Path]] = set()

    def __init__(self, path: Name) -> None:
        self.path = Path(path)

    def __enter__(self) -> io.BufferedWriter:
        need_target(self.path)
        handle, self.temporary = _begun(self.path)
        self.stream = os.fdopen(handle, "wb")
        return self.stream

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            try:
                if kind is None:
                    self.stream.flush()
                    os.fsync(self.stream.fileno())
            finally:
                self.stream.close()
            if kind is None:
                if self.path.exists():
                    self.temporary.chmod(stat.S_IMODE(self.path.stat().st_mode))
                self.temporary.replace(self.path)
        finally:
            _forget(self.temporary)

    @classmethod
    def forget_unfinished(cls) -> None:
        """Remove what is being written: nobody will finish it."""
        for part in list(cls.unfinished):
            _forget(part)


atexit.register(atomic.forget_unfinished)


class Reads:
    """Marks a parameter of a command that names files to read.

    Parameters
    ----------
    need : function of a name
        Refuses a name that cannot be read.
    names : function of the value, optional
        The names of the files in what was given; by default it is one name.
    """

    def __init__(
        self, need: Callable[[str], None] = need_table, names: Callable[[Any], Iterable[str]] = lambda given: [given]
    ) -> None:
        self.need, self.names = need, names


class Writes:
    """Marks a parameter of a command that names a file to write, beside which a fit may keep a checkpoint."""

    def __init__(self, keeps_checkpoint: bool = False) -> None:
        self.keeps_checkpoint = keeps_checkpoint


def need_files(marked: Iterable[tuple[str, Any, Reads | Writes]]) -> None:
    """Refuse what cannot be read, and what must not be written: at once, before anything heavy is imported or computed.

    No output may be an input or another output, under whatever name. A checkpoint, which nobody names, takes only the
    place of another one that gingham wrote.

    Parameters
    ----------
    marked : iterable of (option, value, Reads or Writes)
        The files of a command; where the value is None, nothing was given.
    """
    given = [(option, value, role) for option, value, role in marked if value is not None]
    inputs: list[Name] = []
    for _, value, role in given:
        if isinstance(role, Reads):
            for name in role.names(value):
                role.need(name)
                inputs.append(name)
    outputs: dict[str, Name] = {}
    for option, value, role in given:
        if isinstance(role, Reads) or value == "-":
            continue
        for other, known in outputs.items():
            if os.path.realpath(known) == os.path.realpath(value) or _same(Path(known), value):
                raise GinghamError(f"{other} and {option} both name {str(value)!r}; use separate files.")
        outputs[option] = value
        need_target(value, *inputs)
        if role.keeps_checkpoint:
            checkpoint = checkpoint_of(value)
            need_target(checkpoint, *inputs)
            if checkpoint.exists() and not is_checkpoint(checkpoint):
                raise GinghamError(
                    f"{str(checkpoint)!r} is needed for the checkpoint of this fit, but it is not a checkpoint of "
                    "gingham, or it is damaged. Move it, or choose another model name with --out"
                    "."
                )


def checkpoint_of(model: Name) -> Path:
    """The checkpoint file of a model file."""
    return Path(f"{os.fspath(model)}.checkpoint")


def is_checkpoint(path: Path) -> bool:
    """Whether a file is a checkpoint that gingham wrote, by its content, whatever its name."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(MANIFEST) as stream:
            begins = stream.read(200).decode("utf-8", "replace")  # the manifest names the format and the kind first
    except Exception:  # whatever a file that is no zip, or a damaged one, makes zipfile and zlib say
        return False
    return re.match(rf'{{"format": "{FORMAT}", "version": \d+, "kind": "{CHECKPOINT}"', begins) is not None


def forget_checkpoint(path: Path) -> None:
    """Remove a checkpoint that is no longer needed."""
    if is_checkpoint(path):
        path.unlink()
