"""Watching a promise: bets against a certificate while labelled rows arrive, and an alarm with proof.

A certificate promises E[ℓ] ≤ U for losses ℓ between 0 and 1. While E[ℓ_t | past] ≤ U, each factor 1 + λ(ℓ_t − U) with
0 ≤ λ < 1/U has mean at most 1 given the past, so that the wealth of somebody who bets against the promise reaches
1/α with probability at most α, whenever one looks (Ville). The wealth is spread over five bets λ and over the rows at
which betting begins: .8 of it from the first row on, .2/((j − 1) j) of it from row j on, so that a promise that was
kept for long and then breaks is noticed, too.

The same bets, inverted, bound the average of the expected losses of the rows so far from below, and bets on smaller
losses bound it from above, at all times together (a confidence sequence).
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.certificates.assumptions import Assumption, checked, given, rests_on
from gingham.certificates.bounds import checked_delta, close_in
from gingham.certificates.losses import StatedLoss, loss_scale, scaled_losses, stated_loss
from gingham.certificates.observed import sample_of_rows
from gingham.certificates.record import posterior_digest, posterior_facts
from gingham.certificates.strata import KNOWN_NEW, as_names, as_written, judged_by, which_known
from gingham.core.problem import find_posterior
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.fit_rows import SURE, FitRows, Met, repeated_share
from gingham.data.sample import checked_labels, need_unmasked
from gingham.errors import GinghamError, RefusedCertificate, UnseenItemsWarning
from gingham.storage import digest, read, savable, write

KIND = "watch"  # of a file, and what stands there beside the facts of the certificate and alpha
KEPT = ("tracks", "seen", "chain", "begun", "calls", "history", "ended", "last")
BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8])  # of 1/U, the bet that may lose everything
FIRST = 0.8  # of the wealth is bet from the first row on
POINTS = 400  # of the evidence over time are kept
ALL = "all rows"
RULES = ("mean", "median", "mode")
HOLDS, OPEN, ENDED = "holds", "no proof against it", "ended"
COUNTED = "were counted before"


@savable
@dataclass
class Track:
    """The evidence against one promise, and on the average loss of its rows so far."""

    name: str
    promise: float  # scaled, strictly between 0 and 1
    n: int = 0
    total: float = 0.0  # Σ ℓ
    above: Floats = field(default_factory=lambda: np.zeros(len(BETS)))  # Σ ln(ν + ℓ), ν = U (1/bet − 1)
    below: Floats = field(default_factory=lambda: np.zeros(len(BETS)))  # Σ ln(ν − ℓ), ν = U + (1 − U)/bet
    wealth: Floats = field(default_factory=lambda: np.full(len(BETS), -inf))  # ln of what is at stake, by bet
    ended: int | None = None  # number of rows of the track after which the promise had ended, with proof

    @property
    def _over(self) -> Floats:
        return self.promise * (1.0 / BETS - 1.0)

    @property
    def _under(self) -> Floats:
        return self.promise + (1.0 - self.promise) / BETS

    def evidence(self, losses: Floats) -> Floats:
        """Count scaled losses; ln of the wealth after each of them."""
        if len(losses) == 0:
            return np.zeros(0)
        gains = np.log1p(BETS[:, None] / self.promise * (losses - self.promise))
        summed = np.cumsum(gains, axis=1)
        # ln A_t = ln f_t + ln(A_{t−1} + w_t), for all t of the block at once.
        rows = self.n + np.arange(1, len(losses) + 1)
        shares = np.where(rows == 1, FIRST, (1.0 - FIRST) / np.maximum((rows - 1.0) * rows, 1.0))
        begun = np.log(shares) - (summed - gains)
        begun[:, 0] = np.logaddexp(begun[:, 0], self.wealth)
        at_stake = summed + np.logaddexp.accumulate(begun, axis=1)
        self.wealth = at_stake[:, -1].copy()
        kept = np.log((1.0 - FIRST) / rows)  # not yet bet
        self.n += len(losses)
        self.total += float(losses.sum())
        self.above = self.above + np.log(self._over[:, None] + losses).sum(axis=1)
        self.below = self.below + np.log(self._under[:, None] - losses).sum(axis=1)
        return np.logaddexp(np.logaddexp.reduce(at_stake, axis=0) - log(len(BETS)), kept)

    @property
    def log_wealth(self) -> float:
        """ln of the wealth of who bets against the promise, 0 at the beginning."""
        if self.n == 0:
            return 0.0
        return float(np.logaddexp(np.logaddexp.reduce(self.wealth) - log(len(BETS)), log((1.0 - FIRST) / self.n)))

    def interval(self, price: float) -> tuple[float, float]:
        """Between which numbers the average expected loss lies, scaled; ``price`` is ln 1/α of each side."""
        if self.n == 0:
            return 0.0, 1.0
        paid, mean = price + log(len(BETS)), self.total / self.n

        def too_low(gaps: Floats) -> AnyArray:
            logs = self.above - self.n * np.log(self._over + 1.0 - gaps)
            return np.asarray(np.logaddexp.reduce(logs, axis=-1) > paid)

        def too_high(levels: Floats) -> AnyArray:
            logs = self.below - self.n * np.log(self._under - levels)
            return np.asarray(np.logaddexp.reduce(logs, axis=-1) > paid)

        low = 1.0 - close_in(too_low, 1.0 - mean, 1.0)
        return max(low, 0.0), min(close_in(too_high, mean, 1.0), 1.0)


class Watch:
    """A promise that is watched while labelled rows arrive; begun by `Certificate.watch`.

    Rows are counted in the order in which they arrived, each once. A promise that is kept is called ended with
    probability at most ``alpha``, whenever and however often one looks; the intervals of the loss, all times together,
    miss it with probability at most ``alpha`` as well.

    Attributes
    ----------
    verdict : {"holds", "no proof against it", "ended"}
        "ended": the promise has ended, with proof. "holds": the average loss so far is at most what was promised, with
        proof, too. Otherwise nothing is proved yet.
    tracks : tuple of Track
        The promise on all rows, then those of strata.
    history : list of (rows, ln of the evidence)
        Evidence of 1/alpha or more is proof.
    """

    def __init__(self, facts: Mapping[str, Any], model: object = None, alpha: float = 0.01) -> None:
        self.facts, self.model, self.alpha = dict(facts), model, checked_delta(alpha)
        certified = self.facts["model"]
        if model is not None and certified is not None and certified not in digests(model):
            raise RefusedCertificate("The model is not the one that was certified: its digest differs.")
        self.loss = loss_of(self.facts["loss"])
        self.low, self.width = loss_scale(self.loss.cell)
        promised = [(ALL, self.facts["value"]), *((part["name"], part["value"]) for part in self.facts["strata"] or ())]
        scaled = [(name, (value - self.low) / self.width) for name, value in promised]
        if not 0 < scaled[0][1] < 1 - 1e-9:
            raise RefusedCertificate(
                "This certificate says no more than that losses are bounded: nothing can break it."
            )
        # What promises nothing cannot be broken; its rows count among all rows.
        self.tracks = tuple(Track(name, value) for name, value in scaled if 0 < value < 1 - 1e-9)
        self.seen: FitRows | None = None
        self.chain, self.begun, self.calls = "", ("", 0), 0  # digest of the rows, where the last table began in it
        self.history: list[tuple[int, float]] = []
        self.ended: int | None = None
        self.last: dict[str, float] | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any], facts: Mapping[str, Any], model: object, alpha: float) -> Watch:
        """Watch what a certificate says, with the facts that it was computed from."""
        if said["bound"] not in ("holdout", "progressive"):
            raise RefusedCertificate(
                f"A certificate by {said['bound']!r} is of no single predictions, whose loss could be watched. Watch "
                "one of progressive tests, of bound='holdout' or of certify_predictions."
            )
        names = ("value", "delta", "predictor", "bound", "strata")
        own = facts.get("posterior")
        certified = facts.get("model") if own is None else posterior_digest(own)
        kept = {name: said[name] for name in names} | {"loss": facts["loss"], "model": certified}
        plain = json.loads(json.dumps({**kept, "strata_rule": facts.get("strata")}, default=np.ndarray.tolist))
        return cls(plain, model, alpha)

    def update(
        self,
        X: TableLike,
        y: npt.ArrayLike,
        *,
        predictions: npt.ArrayLike | None = None,
        strata: npt.ArrayLike | None = None,
    ) -> Watch:
        """Count rows that have arrived since the last call, with their labels.

        Parameters
        ----------
        X, y : rows and their labels, in the order of arrival
            Rows that were counted before, or that the model was fitted on, are refused.
        predictions : array of shape (N,), optional
            What was predicted before the labels were known, where the certificate is of finished predictions.
        strata : array of shape (N,), optional
            The stratum of each row, where the certificate has strata that were handed in.
        """
        labels = checked_labels(y)
        if len(labels) == 0:
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenItemsWarning)  # such rows are tested as they are predicted
            guesses = self._predicted(X) if predictions is None else np.asarray(predictions)
        names = self._strata(X, strata, len(labels))
        losses = scaled_losses(self.loss.losses(labels, guesses), self.loss.cell)
        sample, fresh = sample_of_rows(X, labels), None
        if sample is not None:
            repeated_share(sample)  # refuses copies within the batch
            # Later tables may hold the same ids as texts or as numbers: counted rows are known by how they are written.
            texts = replace(sample, modes=tuple(Mode(mode.name, as_written(mode.items)) for mode in sample.modes))
            fresh = FitRows.of(texts)
            fitted = [*getattr(self.model, "members_", ())[-1:], self.model]
            learned = [one for model in fitted for one in getattr(model, "_fit_rows", ())]
            counted = [] if self.seen is None else [(self.seen, texts, COUNTED)]
            for kept, rows, whose in (*counted, *((one, sample, "are of the fit") for one in learned)):
                met = kept.met(rows)
                if met.seen or (whose == COUNTED and again(met, kept, fresh)):
                    which = ", ".join(f"{row:,}" for row in met.rows[:5].tolist())
                    raise RefusedCertificate(
                        f"{met.n_same:,} of the {len(labels):,} rows (row {which}) {whose}: each row is evidence once, "
                        "and none that the model has learned from. Bring those that have arrived since."
                    )
        self._count(losses, names)
        if fresh is not None:
            self.seen = fresh if self.seen is None else self.seen.with_rows(fresh)
        return self

    def add(self, losses: npt.ArrayLike, strata: npt.ArrayLike | None = None) -> Watch:
        """Count losses that were worked out elsewhere, in their own unit; what was counted before is not known."""
        need_unmasked(losses, "losses")
        own = np.atleast_1d(np.asarray(losses, dtype=np.float64)).ravel()
        self._count(scaled_losses(own, self.loss.cell), None if strata is None else as_names(strata, len(own)))
        return self

    def _count(self, losses: Floats, names: AnyArray | None) -> None:
        n, before = len(losses), self.n
        if n == 0:
            return
        logs, threshold = np.empty((len(self.tracks), n)), log(len(self.tracks) / self.alpha)
        for number, track in enumerate(self.tracks):
            mine = np.arange(n) if number == 0 else np.flatnonzero((names == track.name) if names is not None else [])
            start, first = track.log_wealth, track.n
            found = track.evidence(losses[mine])
            over = np.flatnonzero(found >= threshold)
            if track.ended is None and len(over):
                track.ended = first + int(over[0]) + 1
            # Between its own rows the wealth of a stratum stays as it is.
            steps = np.zeros(n, dtype=np.int64)
            steps[mine] = 1
            logs[number] = np.concatenate([[start], found])[np.cumsum(steps)]
        together = np.logaddexp.reduce(logs, axis=0) - log(len(self.tracks))
        over = np.flatnonzero(together >= -log(self.alpha))
        if self.ended is None and len(over):
            self.ended = before + int(over[0]) + 1
        shown = np.unique(np.linspace(0, n - 1, min(n, 50)).astype(int))
        self.history += [(before + int(at) + 1, float(together[at])) for at in shown]
        while len(self.history) > POINTS:
            self.history = [*self.history[:-1:2], self.history[-1]]
        self.calls += 1
        own = Track(ALL, self.tracks[0].promise)
        own.evidence(losses)
        # The average loss of the rows of one call, all calls together: α is shared as 1/(k (k + 1)).
        low, high = own.interval(log(2 * self.calls * (self.calls + 1) / self.alpha))
        self.last = {
            "rows": n, "loss": self._in_unit(own.total / n), "low": self._in_unit(low), "high": self._in_unit(high),
        }  # fmt: skip

    def _in_unit(self, scaled: float) -> float:
        return self.low + self.width * scaled

    def _predicted(self, X: TableLike) -> AnyArray:
        rule, model = self.facts["predictor"], self.model
        if rule == "gibbs":
            raise RefusedCertificate(
                "The randomised predictor is certified, which draws an answer anew for each row: certify a prediction, "
                "predictor='mean' or 'median', and watch that."
            )
        if model is None or not (hasattr(model, "shares_") or rule in RULES):
            raise GinghamError(
                f"The certificate is of {rule!r}, which nobody here can work out: give predictions=, as they were made "
                "before the labels were known."
            )
        modes_of = getattr([model, *getattr(model, "members_", ())[-1:]][-1], "_item_modes", None)
        if modes_of is not None:
            which_known(id_columns(X).columns, modes_of())
        if self.loss.cell.answers == "distribution":
            return np.asarray(model.predict_proba(X))  # type: ignore[attr-defined]
        if rule in RULES:
            return np.asarray(model.predict(X, rule=rule))  # type: ignore[attr-defined]
        # A member that is drawn for each row is drawn by the number of the first: the same rows, the same answers.
        return np.asarray(model.predict(X, random_state=self.n))  # type: ignore[attr-defined]

    def _strata(self, X: TableLike, strata: npt.ArrayLike | None, n_rows: int) -> AnyArray | None:
        rule = self.facts["strata_rule"]
        if strata is not None and rule == KNOWN_NEW:
            raise GinghamError("The strata of this certificate follow from the items of a row: leave strata= out.")
        if strata is not None:
            return as_names(strata, n_rows)
        if rule == KNOWN_NEW:
            model: Any = self.model
            modes = model._item_modes()
            return judged_by([mode.items for mode in modes], [mode.name for mode in modes])(X)
        if rule is not None:
            raise GinghamError("The certificate has strata: give strata=, the stratum of each row.")
        return None

    @property
    def n(self) -> int:
        """Rows that were counted."""
        return self.tracks[0].n

    @property
    def verdict(self) -> str:
        """What is known of the promise on all rows and of those of strata together."""
        if self.ended is not None:
            return ENDED
        return HOLDS if self.n and self.interval()[1] <= self.facts["value"] else OPEN

    def interval(self, track: Track | None = None) -> tuple[float, float]:
        """Between which losses the average over the rows so far lies, all tracks and all times together."""
        track = self.tracks[0] if track is None else track
        low, high = track.interval(log(2 * len(self.tracks) / self.alpha))
        return self._in_unit(low), self._in_unit(high)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the verdict rests on."""
        found = [given("order watched"), given("predictions watched")]
        return (*found, checked("range", low=float(self.low), high=float(self._in_unit(1.0))))

    def rows(self) -> list[dict[str, object]]:
        """One plain record per promise."""
        found: list[dict[str, object]] = []
        for track in self.tracks:
            low, high = self.interval(track)
            found.append({
                "name": track.name, "promised": self._in_unit(track.promise), "rows": track.n,
                "loss": self._in_unit(track.total / track.n) if track.n else None, "low": low, "high": high,
                "log10_evidence": track.log_wealth / log(10), "ended_after": track.ended,
            })  # fmt: skip
        return found

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "verdict": self.verdict, "alpha": self.alpha, "delta": self.facts["delta"], "loss": self.loss.name,
            "ended_after": self.ended, "rows": self.n, "calls": self.calls, "last": self.last, "tracks": self.rows(),
        }  # fmt: skip

    def explain(self) -> str:
        """The verdict in plain words."""
        first, percent = self.rows()[0], f"{100 * self.alpha:g} %"
        promise = f"that the average {self.loss.name} loss is at most {self.facts['value']:.4g}"
        words = {
            HOLDS: f"The promise {promise} holds so far: of these rows it is proved.",
            OPEN: f"The promise {promise} holds so far: there is no proof against it.",
            ENDED: f"The promise {promise} has ended, with proof after {self.ended or 0:,} rows (a false alarm has at "
            f"most {percent} for all times together; {100 * (self.alpha + self.facts['delta']):g} % where the "
            "certificate may have failed, too).",
        }
        lines = [words[self.verdict]]
        if self.n:
            lines.append(
                f"Over the {self.n:,} rows so far the loss is {first['loss']:.4g}; the average expected loss lies "
                f"between {first['low']:.4g} and {first['high']:.4g}, at all times with confidence "
                f"{100 * (1 - self.alpha):g} %."
            )
        if self.last is not None and self.calls > 1:
            last = self.last
            lines.append(
                f"Of the last {last['rows']:,} rows it is {last['loss']:.4g}, and lies between {last['low']:.4g} and "
                f"{last['high']:.4g}."
            )
        for row in self.rows()[1:]:
            if row["rows"]:
                how = (
                    f"has ended, with proof after {row['ended_after']:,} of its rows"
                    if row["ended_after"]
                    else "stands"
                )
                lines.append(
                    f"  {row['name']}: promised {row['promised']:.4g}, {row['loss']:.4g} on {row['rows']:,} rows "
                    f"({row['low']:.4g} to {row['high']:.4g}); the promise {how}."
                )
        lines += ["", *rests_on(self.assumptions)]
        return "\n".join(lines)

    # files

    def skipped(self, rows: Sequence[Sequence[str]]) -> int:
        """How many rows at the beginning of a table that has grown are those that were counted; counts them in."""
        start, known = self.begun
        if len(rows) < known or chained(start, rows[:known]) != self.chain:
            start, known = self.chain, 0
        self.begun, self.chain = (start, len(rows)), chained(self.chain, rows[known:])
        return known

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that the watch knows, for a later run; the file appears whole or not at all."""
        write(path, KIND, {name: getattr(self, name) for name in ("facts", "alpha", *KEPT)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: object = None) -> Watch:
        """Go on with a watch that was saved."""
        try:
            kind, state = read(path)
        except GinghamError as error:
            kind, state = "", {"error": error}
        if kind != KIND or {*state} != {"facts", "alpha", *KEPT}:
            why = f" ({state['error']})" if "error" in state else ""
            raise GinghamError(f"{os.fspath(path)!r} is no state of a watch that gingham wrote{why}.")
        found = cls(state["facts"], model, state["alpha"])
        for name in KEPT:
            setattr(found, name, state[name])
        return found


def digests(model: object) -> list[str]:
    """By what certificates know a predictor: the digest of each relation of its posterior, or of all that it is."""
    posterior = find_posterior(model)
    relations = () if posterior is None else range(len(posterior.structure.factors))
    own = [posterior_digest(posterior_facts(posterior, relation)) for relation in relations if posterior is not None]
    return [*own, *([digest(model)] if hasattr(model, "_to_file") else [])]


def again(met: Met, *kept: FitRows) -> bool:
    """Whether rows are equal to counted ones more often than rows of one table are to each other."""
    repeated = [float(rows.draws[rows.draws > 1].sum()) for rows in kept]
    if met.n_same == 0 or max(repeated) == 0:
        return met.n_same > 0
    rate = max((some + 1.0) / (float(rows.draws.sum()) + 2.0) for some, rows in zip(repeated, kept))
    return float(betainc(met.n_same, met.n_compared - met.n_same + 1, rate)) < SURE


def loss_of(facts: Mapping[str, Any]) -> StatedLoss:
    """The loss that a certificate's facts name, on the labels that were stated."""
    name, label_values, bounds = facts["name"], facts["alphabet"], facts["bounds"]
    loss = facts["table"] if name == "table" else name
    found = stated_loss(
        loss, label_values, bounds if label_values is None or name in ("absolute", "quadratic") else None
    )
    if not np.allclose(loss_scale(found.cell), (facts["low"], facts["range"])):
        raise RefusedCertificate(f"The {name!r} loss of this certificate cannot be worked out from its facts.")
    return found


def chained(chain: str, rows: Sequence[Sequence[str]]) -> str:
    """Update the digest of earlier rows with new rows."""
    for row in rows:
        text = chain + "".join(f"{len(one)}:{one}" for one in row)
        chain = hashlib.sha256(text.encode()).hexdigest()
    return chain
