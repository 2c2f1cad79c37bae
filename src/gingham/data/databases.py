"""Rows that a database answers a query with: DuckDB, and whatever has an ADBC driver, PostgreSQL first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from gingham.errors import GinghamError

if TYPE_CHECKING:
    import polars as pl

DRIVERS = {"duckdb": "duckdb", "postgresql": "adbc_driver_postgresql.dbapi", "postgres": "adbc_driver_postgresql.dbapi"}
BATCH = 2**17  # rows that are fetched at a time


class Query(NamedTuple):
    """What ``scheme://where?query=select …`` asks, and whom."""

    scheme: str
    where: str  # the rest of the address
    sql: str

    @classmethod
    def of(cls, address: str) -> Query:
        """The query of an address, which ends with it; written as SQL or, without blanks, percent-encoded."""
        scheme, _, rest = address.partition("://")
        if scheme not in DRIVERS:
            raise GinghamError(f"{printable(address)} cannot be read: {scheme}:// is not one of {', '.join(DRIVERS)}.")
        where, sql = (*re.split(r"[?&]query=", rest, maxsplit=1), "")[:2]
        if not sql.strip():
            raise GinghamError(f'{printable(address)} names no rows: add a query, as in "{scheme}://…?query=select …".')
        return cls(scheme, where, sql if re.search(r"\s", sql) else unquote(sql))

    def __str__(self) -> str:
        return printable(f"{self.scheme}://{self.where}")

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows, some at a time, all as they stood when the query began; nothing can be changed by it."""
        import polars as pl

        n_rows = 0
        with self._connected() as connection:
            try:
                found = pl.read_database(self.sql, connection, iter_batches=True, batch_size=BATCH)
                for batch in found:
                    n_rows += len(batch)
                    yield batch
            except GeneratorExit:
                raise
            except Exception as error:  # each driver has errors of its own
                if n_rows:
                    raise GinghamError(
                        f"{self} broke off after {n_rows:,} rows: {_first_lines(error)} Nothing was fitted; "
                        "run it again."
                    ) from None
                raise GinghamError(f"The query to {self} failed: {_first_lines(error)}") from None
        if not n_rows:
            raise GinghamError(f"The query to {self} finds no rows.")

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            driver = import_module(DRIVERS[self.scheme])
            import_module("pyarrow")
        except ImportError as error:
            raise GinghamError(f"{self.scheme}:// needs {error.name}: pip install gingham[sql].") from None
        opened: Callable[[], Any] = lambda: driver.connect(f"{self.scheme}://{self.where}")  # noqa: E731
        if self.scheme == "duckdb":  # as in SQLAlchemy: duckdb:///name is relative, duckdb:////name absolute
            path = self.where.removeprefix("/")
            if path and not Path(path).is_file():
                raise GinghamError(f"There is no database file {path!r}.")
            if path:
                with Path(path).open("rb") as file:
                    if file.read(12)[8:] != b"DUCK":
                        raise GinghamError(f"{path!r} is not a DuckDB database.")
            opened = lambda: driver.connect(path or ":memory:", read_only=bool(path))  # noqa: E731
        try:
            connection = opened()
        except Exception as error:
            raise GinghamError(f"{self} cannot be reached: {_first_lines(error)}") from None
        try:
            if self.scheme != "duckdb":
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
        finally:
            connection.close()


def is_query(source: object) -> bool:
    """Whether a source is the address of a database and not a file."""
    return isinstance(source, str) and "://" in source


def printable(source: str) -> str:
    """A source as messages may show it: without a password, and without the query."""
    if not is_query(source):
        return repr(source)
    return re.sub(r"://([^/@:]*):[^/@]*@", r"://\1:***@", re.split(r"[?&]query=", source)[0])


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) or type(error).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."
