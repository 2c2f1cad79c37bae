"""Files of public data sets: downloaded once into a folder, checked, resumed when interrupted."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from gingham.errors import GinghamError

CHUNK = 2**20
TIMEOUT = 30.0


@dataclass(frozen=True)
class Remote:
    """A file at its publisher.

    ``checksum`` is "md5:…" or "sha256:…"; without one, the first download is remembered and later ones
    must equal it.
    """

    name: str
    url: str
    checksum: str | None = None


def data_folder() -> Path:
    """GINGHAM_DATA, or a folder in the user's cache."""
    given = os.environ.get("GINGHAM_DATA")
    return Path(given) if given else Path.home() / ".cache" / "gingham"


def fetch(remote: Remote, folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> Path:
    """The local path of a file, downloaded if it is not there; a damaged file is refused."""
    home = data_folder() if folder is None else Path(folder)
    path = home / remote.name
    if not path.is_file():
        if not download:
            raise GinghamError(_advice(remote, home, "is not there"))
        home.mkdir(parents=True, exist_ok=True)
        _download(remote, path, home)
    _check(remote, path)
    return path


def _download(remote: Remote, path: Path, home: Path) -> None:
    part = path.with_name(path.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            goes_on = have and answer.status == 206
            with part.open("ab" if goes_on else "wb") as stream:
                while chunk := answer.read(CHUNK):
                    stream.write(chunk)
            expected = answer.headers.get("Content-Length")
            if expected is not None and part.stat().st_size - (have if goes_on else 0) < int(expected):
                raise GinghamError(f"The download of {remote.name} broke off; call again and it goes on.")
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # all of it was there already
            part.replace(path)
            return
        raise GinghamError(_advice(remote, home, f"was refused by its publisher ({error.code})")) from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise GinghamError(_advice(remote, home, f"could not be downloaded ({reason}); is there a network?")) from None
    part.replace(path)


def _advice(remote: Remote, home: Path, what: str) -> str:
    return (
        f"{remote.name} {what}. Get it from {remote.url} and put it into {str(home)!r} "
        "(or set GINGHAM_DATA to the folder that has it)."
    )


def _check(remote: Remote, path: Path) -> None:
    known = remote.checksum
    note = path.with_name(path.name + ".sha256")
    if known is None and note.exists():
        known = f"sha256:{note.read_text(encoding='ascii').strip()}"
    method, _, expected = (known or "sha256:").partition(":")
    digest = hashlib.new(method, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    if known is None:
        note.write_text(digest.hexdigest(), encoding="ascii")
    elif digest.hexdigest() != expected:
        raise GinghamError(
            f"{str(path)!r} is not the file that was published ({method} {digest.hexdigest()}, expected {expected}). "
            "Delete it and download it again."
        )
