"""Strata: parts of the rows, each with a guarantee of its own, so that the mix of tomorrow may be another one.

Each stratum, and all rows together, are bounded with an equal share of δ. All these bounds hold together, so that
with probability at least 1 − δ, for every mix w of the strata, Σ_s w_s L_s ≤ Σ_s w_s U_s: the mix may be chosen
afterwards, as the shares in a batch of rows whose labels are not known yet. A stratum without tests is bounded by the
largest loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Bools, Ints, TableLike
from gingham.certificates.assumptions import given
from gingham.data import Mode
from gingham.data.adapt import check_order, id_columns
from gingham.data.sample import need_unmasked
from gingham.errors import GinghamError, RefusedCertificate

if TYPE_CHECKING:
    from gingham.certificates.certificate import Certificate

KNOWN_NEW = "known/new"  # strata=: whether the items of a row are known to the predictor
KNOWN = "known"
SET_ASIDE = 0.05  # of the ids of each column, for tests of new ones
MOST = 1000  # strata; each has to be shown, and takes its share of δ


@dataclass(frozen=True)
class Stratum:
    """What is guaranteed of one part of the rows, in the loss's own unit."""

    name: str
    value: float
    empirical: float | None  # None without tests
    n_observations: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return vars(self).copy()


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of a certificate, all of whose bounds hold together with probability at least 1 − δ.

    Attributes
    ----------
    parts : tuple of Stratum
        By name.
    judge : callable or None
        The strata of rows of ids; None where strata were handed in.
    """

    parts: tuple[Stratum, ...]
    judge: Callable[[TableLike], AnyArray] | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Stratum:
        """The stratum of that name."""
        for part in self.parts:
            if part.name == str(name):
                return part
        raise KeyError(name)

    def shares(self, rows: object) -> dict[str, float]:
        """The mix of some rows: from shares by name, the stratum of each row, or rows of ids."""
        if isinstance(rows, Mapping):
            shares = {str(name): float(share) for name, share in rows.items()}
            if not all(share >= 0 for share in shares.values()) or not abs(sum(shares.values()) - 1) < 1e-6:
                raise GinghamError("The shares of a mix are numbers ≥ 0 that sum to 1.")
            return shares
        one_each = np.ndim(rows) == 1 and not hasattr(rows, "columns")  # type: ignore[arg-type]
        if self.judge is None and not one_each:
            raise GinghamError("Give the stratum of each row, shape (N,), or the share of each stratum by its name.")
        names = as_names(rows) if self.judge is None or one_each else self.judge(rows)  # type: ignore[arg-type]
        if len(names) == 0:
            raise GinghamError("There are no rows to take the mix from.")
        found, counts = np.unique(names, return_counts=True)
        return {str(name): float(count / len(names)) for name, count in zip(found, counts)}

    def __str__(self) -> str:
        rows = [["stratum", "observed", "at most", "tests"]]
        for one in self.parts:
            observed = "–" if one.empirical is None else f"{one.empirical:.4g}"
            rows.append([one.name, observed, f"{one.value:.4g}", f"{one.n_observations:,}"])
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
            for row in rows
        )


def column_name(strata: object) -> str:
    """What a column of strata is called in the table that is checked later."""
    name = getattr(strata, "name", None)
    return name if isinstance(name, str) and name else "stratum"


def texts_of(values: npt.ArrayLike, what: str, n_rows: int | None = None, several: bool = False) -> AnyArray:
    """Names of rows as texts, one for each or, where there may be ``several``, a row of them."""
    need_unmasked(values, what)
    names = np.asarray(values)
    if (names.ndim != 1 and not (several and names.ndim == 2)) or (n_rows is not None and len(names) != n_rows):
        wanted = "(N,)" if n_rows is None else f"({n_rows},)"
        raise GinghamError(f"{what} has shape {names.shape}; it needs a name for each row, {wanted}.")
    for row, own in enumerate(names.reshape(len(names), -1).tolist() if names.dtype.kind in "fcOmM" else ()):
        if any(value is None or value != value for value in own):
            raise GinghamError(f"{what} is missing in row {row}: give such rows a name of their own.")
    texts = names.astype(str)
    if names.dtype.kind == "O":  # 1 and 1.0 are one name, and would be two
        first: dict[object, str] = {}
        for value, text in zip(names.ravel().tolist(), texts.ravel().tolist()):
            if first.setdefault(value, text) != text:
                raise GinghamError(f"{what} names {first[value]} and {text}, which are equal: write both alike.")
    return texts


def as_names(strata: npt.ArrayLike, n_rows: int | None = None) -> AnyArray:
    """The stratum of each row as a text."""
    found = texts_of(strata, "strata", n_rows)
    if n_rows is not None and len(np.unique(found)) > MOST:
        raise RefusedCertificate(
            f"strata names {len(np.unique(found)):,} strata, at most {MOST:,} share δ: strata are groups of rows that "
            "were named beforehand. Where each has few rows that depend on each other, groups= counts each once."
        )
    return found


def as_written(ids: AnyArray) -> AnyArray:
    """Ids as texts, alike for 5, 5.0 and "5"."""
    return np.array([str(int(v) if isinstance(v, float) and v.is_integer() else v) for v in ids.tolist()], dtype=str)


def which_known(columns: Sequence[AnyArray], modes: Sequence[Mode]) -> list[Bools]:
    """Of each column of ids, which a predictor knows.

    Refuses ids all of which are new only because they are texts where the predictor knows numbers, or the reverse.
    """
    known = [mode.encode(column) >= 0 for column, mode in zip(columns, modes)]
    for column, mode, own in zip(columns, modes, known):
        if not own.any() and np.isin(as_written(column), as_written(mode.items)).any():
            raise GinghamError(
                f"Column {mode.name!r}: the predictor knows these ids in another type. Write them as in its fit, as "
                "numbers or as text."
            )
    return known


def known_or_new(known: Sequence[Bools], columns: Sequence[str]) -> AnyArray:
    """The stratum of each row: which of its items are known, one array per column."""
    names = np.full(len(known[0]), "", dtype=object)
    for is_known, column in zip(known, columns):
        names[~is_known] = [f"{before} + {column}" if before else f"new {column}" for before in names[~is_known]]
    names[names == ""] = KNOWN
    return names.astype(str)


def set_aside(columns: Sequence[AnyArray], seed: int) -> list[AnyArray]:
    """Some ids of each column of texts, drawn by a seed: rows with them will be learned from by nobody."""
    rng, found = np.random.default_rng([seed, len(columns)]), []
    for column in columns:
        ids = np.unique(column)
        found.append(ids[rng.permutation(len(ids))[: round(SET_ASIDE * len(ids))]])
    return found


def all_known_or_new(columns: Sequence[str]) -> list[str]:
    """The strata there can be, those of which no row was tested as well."""
    grid = np.indices([2] * len(columns)).reshape(len(columns), -1).astype(bool)
    return sorted(set(known_or_new([~one for one in grid], columns).tolist()))


def judged_by(items: Sequence[AnyArray], columns: Sequence[str]) -> Callable[[TableLike], AnyArray]:
    """Says of rows of ids which of the known items stand in them."""

    def judge(X: TableLike) -> AnyArray:
        found, names = id_columns(X)[:2]
        if len(found) != len(items):
            raise GinghamError(f"The rows have {len(found)} columns of ids, and the predictor knows {len(items)}.")
        check_order(names, columns)
        return known_or_new(which_known(found, [Mode(name, mine) for name, mine in zip(columns, items)]), columns)

    return judge


def by_items(strata: object) -> bool:
    """Whether the stratum of a row follows from its items; refuses a rule that is unknown."""
    if isinstance(strata, str) and strata != KNOWN_NEW:
        raise GinghamError(f"strata={strata!r} is unknown: {KNOWN_NEW!r}, or the stratum of each row.")
    return isinstance(strata, str)


@dataclass(frozen=True, eq=False)
class Division:
    """The stratum of each row, as it was handed in, or by the items that a predictor knows of each column."""

    names: AnyArray
    items: Sequence[AnyArray] = ()
    columns: Sequence[str] = ()

    @classmethod
    def of(cls, known: Sequence[Bools], items: Sequence[AnyArray], columns: Sequence[str]) -> Division:
        """By items, where it is known of each row which of its items the predictor knows."""
        return cls(known_or_new(known, columns), items, columns)

    @property
    def handed_in(self) -> AnyArray | None:
        """Strata that whoever checks a certificate has to be told."""
        return None if self.columns else self.names


def with_strata(
    division: Division | None, certify: Callable[[Ints | None, int], Certificate], names: AnyArray | None = None
) -> Certificate:
    """The certificate of all rows with those of each stratum; ``certify(rows, shares)`` has δ/shares for some rows.

    ``names`` are the strata of the tests, where these are not the rows. Strata by items of which no row was tested are
    bounded by the largest loss.
    """
    if division is None:
        return certify(None, 1)
    judge, possible = None, list[str]()
    if division.columns:
        judge = judged_by(division.items, division.columns)
        possible = all_known_or_new(division.columns)
    tested, at = np.unique(division.names if names is None else names, return_inverse=True)
    shares = len(tested) + 1
    whole = certify(None, shares)
    parts = []
    for number, name in enumerate(tested.tolist()):
        one = certify(np.flatnonzero(at.ravel() == number), shares)
        parts.append(Stratum(name, one.value, one.empirical, one.n_observations))
    parts += [Stratum(name, whole.worst, None, 0) for name in possible if name not in tested]
    strata = Strata(tuple(sorted(parts, key=lambda part: part.name)), judge)
    how = given("strata" if judge is None else "strata by items")
    return replace(whole, strata=strata, assumptions=(*whole.assumptions, how))


def strata_facts(certificate: Certificate) -> dict[str, object]:
    """What a certificate file says of the strata of rows; nothing where there are none."""
    if certificate.strata is None:
        return {}
    return {"strata": "column" if certificate.strata.judge is None else KNOWN_NEW}
