"""An independent checker, written from the theorems.

python -m gingham.verify c.json model.gingham data.csv
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

GRID = 1.0 + np.geomspace(1e-4, 1e4, 68)  # the bets ν of log-wealth, published before any data
ANSWER_GRIDS = [2**j + 1 for j in range(1, 13)]  # how many numbers a cell may answer
SMOOTHINGS = np.geomspace(1e-6, 1.0, 25)  # shares of the uniform distribution
# the bound of each kind of file, what has to be given for it, or else how the rows came
BOUND = {"in sample": "log-wealth", "predictions": "holdout", "split prior": "split-prior"}
BOUND |= {kind: kind for kind in ("holdout", "progressive", "density")}
TOLD = {"holdout": {"not fitted on these"}, "split-prior": {"prior from elsewhere"}}
TOLD |= {"progressive": {"fixed before the first test", "settings"}}
# what gingham makes true by itself; of the second line nobody but its run can know
MADE = {"range", "urn", "rounded answers", "set aside", "no row of the fit"}
BY_THE_RUN = {"seed drawn", "members fitted here"}
FITTED = {"members fitted here", "members fitted outside"}
CAME = {"independent", "independent or without replacement", "without replacement", "arriving"}
CAME |= {"pairs among these nodes"}
SHUFFLED, ARRIVED = {"one source", "all alike"}, {"order of arrival"}
KEYS = {  # of a file, and no others
    "": "format version kind certificate data facts",
    "certificate": "value lower empirical worst loss bound predictor delta "
    "n_observations chosen_from "
    "terms parameters assumptions anytime strata theorem reference",
    "data": "n_rows columns names kinds label weighted digest",
    "facts": "loss posterior nu_grid n_answers rounded population method candidates seed rows "
    "counts prior order strata warm_up pilot edges references rule clip predictions model",
    "assumption": "code status facts",
    "stratum": "name value empirical n_observations",
}
Array = np.ndarray[Any, Any]
Record = dict[str, Any]  # an object of a JSON file
# losses of the error, convex, and other losses
OF_GAP: dict[str, Callable[..., Array]] = {"absolute": np.abs, "quadratic": np.square}
OTHERS = ("zero-one", "table", "code length (nats)")
STATED = "What members that are no plain grids predicted is taken as it is stated."
lgamma = np.vectorize(math.lgamma)


class Unreadable(ValueError):
    """A file that no certificate could be read from."""


# the theorems


def bisect(too_far: Callable[[float], bool]) -> float:
    """Where a condition turns true between 0 and 1; 1 where it never does."""
    inside, outside = 0.0, 1.0
    for _ in range(100):
        at = (inside + outside) / 2
        inside, outside = (inside, at) if too_far(at) else (at, outside)
    return outside


def log_wealth(losses: Array, weights: Array, price: float, n: float) -> float:
    """sup {L : mean over ν of exp{N [E ln(ν − X) − ln(ν − L)]} ≤ e^price}; it includes ln 1/δ."""
    gains = np.array([weights @ np.log(nu - losses) for nu in GRID]) / weights.sum()
    meet = price + math.log(len(GRID))
    return bisect(lambda at: bool(np.logaddexp.reduce(n * (gains - np.log(GRID - at))) > meet))


def betting(losses: Array, price: float, seed: int) -> float:
    """sup {L : mean over orders of Π (ν_t − X_t)/(ν_t − L) ≤ e^price}, ν_t from losses before t."""
    n, orders = len(losses), max(1, min(32, 2**16 // len(losses)))
    x = np.random.default_rng(seed).permuted(np.tile(losses, (orders, 1)), axis=1)
    seen = np.arange(2, n + 2)
    means = (0.5 + np.cumsum(x, axis=1)) / seen
    spread = (0.25 + np.cumsum((x - means) ** 2, axis=1)) / seen
    before = np.insert(means[:, :-1], 0, 0.5, axis=1)
    variance = np.insert(spread[:, :-1], 0, 0.25, axis=1)
    nu = np.maximum(before + np.sqrt(variance * n / (2 * price)), 1.001)
    meet = price + math.log(orders)

    def too_far(at: float) -> bool:
        return bool(np.logaddexp.reduce(np.log((nu - x) / (nu - at)).sum(axis=1)) > meet)

    return bisect(too_far)


def fixed_bet(warm: Array, n: float, price: float, share: float = 1.0) -> float:
    """ν = max(μ · share + σ √(n / (2 ln 1/δ)), 1.001) from losses before the first test."""
    return max(float(warm.mean() * share + warm.std() * math.sqrt(n / (2 * price))), 1.001)


def partition_price(q: Array) -> float:
    """KL of draws from q(c|x) against: number of clusters, their sizes, who belongs where."""
    n, m = q.shape
    law, used = np.eye(1, n + 1).repeat(m, axis=0), q[q > 0]  # of the items in each cluster
    for row in q:  # the last column is empty until the last item, so that nothing comes round
        law = law * (1 - row[:, None]) + np.roll(law, 1, axis=1) * row[:, None]
    placed = math.lgamma(n + 1) - (law @ lgamma(np.arange(1, n + 2))).sum()
    sizes = math.lgamma(n + m) - math.lgamma(m) - math.lgamma(n + 1)
    return float(math.log(m * (m + 1)) + sizes + placed + (used * np.log(used)).sum())


def type_price(cells: Array, size: int) -> float:
    """How often each of ``size`` answers occurs, then in which cells."""
    times = np.unique(cells, return_counts=True)[1]
    placed = math.lgamma(cells.size + 1) - sum(math.lgamma(c + 1) for c in times)
    return math.lgamma(cells.size + size) - math.lgamma(size) - math.lgamma(cells.size + 1) + placed


def ln_shtarkov(size: int, n: int) -> float:
    """C(1) = 1, C(2) = Σ_k C(N, k) (k/N)^k (1 − k/N)^(N−k), C(k + 2) = C(k + 1) + (N/k) C(k)."""
    k, facts = np.arange(1, n), lgamma(np.arange(1, n + 2))
    logs = facts[n] - facts[1:n] - facts[n - 1 : 0 : -1]
    logs += k * np.log(k / n) + (n - k) * np.log(1 - k / n)
    before, last = 0.0, math.log(2 + float(np.exp(logs).sum()))
    for j in range(1, size - 1):
        before, last = last, float(np.logaddexp(last, math.log(n / j) + before))
    return 0.0 if size == 1 else last


def largest_mean(weights: Array, values: Array, epsilon: float) -> float:
    """sup {Σ p v : KL(p̂‖p) ≤ ε} = min over ν ≥ max v of ν − exp(Σ p̂ ln(ν − v) − ε)."""
    top, p, gaps = float(values.max()), weights[weights > 0], values.max() - values[weights > 0]
    low, high = np.log(max(top - values.min(), 1e-300)) + np.array([-30.0, 14.0])  # ln(ν − max v)
    for _ in range(16):
        t = np.linspace(low, high, 21)
        duals = top + np.exp(t) - np.exp(np.log(np.exp(t)[:, None] + gaps) @ p - epsilon)
        low, high = t[max(duals.argmin() - 1, 0)], t[min(duals.argmin() + 1, 20)]
    return min(top, float(duals.min()))


# files


def read_model(path: str | Path) -> object:
    """The state of a model file as nested lists, objects and arrays."""
    archive = zipfile.ZipFile(path)

    def plain(node: Record) -> object:
        if node.get("$") == "array":
            return np.load(io.BytesIO(archive.read(node["name"])))
        return node.get("items") if "$" in node else node

    return json.loads(archive.read("manifest.json"), object_hook=plain)["state"]


def model_digest(path: str | Path) -> str:
    """SHA-256 of what a model file holds of the model: its JSON, then its arrays by name."""
    archive = zipfile.ZipFile(path)
    model = json.loads(archive.read("manifest.json"))["state"]["model"]
    arrays = sorted({node["name"] for node in nodes(model, "$", "name") if node["$"] == "array"})
    sums = [hashlib.sha256(archive.read(name)).digest() for name in arrays]
    return hashlib.sha256(json.dumps(model, sort_keys=True).encode() + b"".join(sums)).hexdigest()


def mixed(values: Array) -> Array:
    """The numbers that splitmix64 makes of others."""
    z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def numbered(values: Array) -> Array | None:
    """The 64 bits by which model files know whole numbers and texts; None for other ids."""
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        values = values.astype(str)
    if values.dtype.kind in "iu":
        return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    if values.dtype.kind != "U":
        return None
    letters = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)
    factors = mixed(np.arange(1, letters.shape[1] + 1)) | np.uint64(1)
    return np.asarray((letters.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64))


def nodes(tree: object, *keys: str) -> list[Record]:
    """All objects of a nested state that have the given keys, in order."""
    found = [tree] if isinstance(tree, dict) and all(key in tree for key in keys) else []
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return found + [node for value in inner for node in nodes(value, *keys)]


def texts(values: Array | Sequence[object]) -> list[str]:
    return [str(v) for v in (values.tolist() if isinstance(values, np.ndarray) else values)]


def known_or_new(known: Sequence[Array], names: Sequence[str]) -> Array:
    """The stratum of each row by which of its items are known."""
    new = [[name for name, held in zip(names, row) if not held] for row in zip(*known)]
    return np.array([f"new {' + '.join(mine)}" if mine else "known" for mine in new], object)


def written(row: Sequence[str]) -> str:
    """A row of texts, each after its length, so that no two rows are written alike."""
    return "".join(f"{len(text)}:{text}" for text in row) + ";"


def known_keys(found: Record, place: str) -> None:
    """Refuse what this checker would pass over in silence."""
    unknown = [key for key in found if key not in KEYS[place].split()]
    if unknown:
        where = f", in {place!r}" if place else ""
        raise Unreadable(f"{unknown[0]!r} is no key of a certificate file{where}.")


def once(pairs: list[tuple[str, Any]]) -> Record:
    """A JSON object, none of whose keys stands there twice."""
    if len(dict(pairs)) < len(pairs):
        raise Unreadable(f"A key stands twice among {', '.join(key for key, _ in pairs)}.")
    return dict(pairs)


def finite(text: str) -> float:
    """A JSON number that is one: no infinity, no NaN, no exponent beyond what a float holds."""
    if not math.isfinite(float(text)):
        raise Unreadable(f"{text[:20]} is no finite number.")
    return float(text)


def whole(text: str) -> int:
    """A JSON integer that a float holds exactly enough to be compared."""
    if len(text) > 20:
        raise Unreadable(f"{text[:20]}… has more digits than any number here.")
    return int(text)


def read_certificate(path: str | Path) -> Record:
    """A file in which every key is known and stands once, and every number is one."""
    text = Path(path).read_text("utf-8")
    document: Record = json.loads(
        text, object_pairs_hook=once, parse_float=finite, parse_int=whole, parse_constant=finite
    )
    known_keys(document, "")
    for place in ("certificate", "data", "facts"):
        known_keys(document[place], place)
    for assumption in document["certificate"]["assumptions"]:
        known_keys(assumption, "assumption")
    for part in document["certificate"]["strata"] or []:
        known_keys(part, "stratum")
    return document


class Grid:
    """Memberships and answers, the codes of rows, and the memberships of items nobody has seen."""

    def __init__(self, q: Sequence[Any], answers: object, items: Any, columns: Any) -> None:
        self.answers = np.array(answers)
        self.q = [np.array(m, float) / np.sum(m, 1, float, keepdims=True) for m in q]
        self.others = [(m.sum(axis=0) + 1) / sum(m.shape) for m in self.q]
        index = [{item: code for code, item in enumerate(texts(mode))} for mode in items]
        pairs = zip(index, columns)
        self.codes = [np.array([ids.get(v, -1) for v in own], dtype=int) for ids, own in pairs]

    def mixed(self, table: Array) -> Array:
        """Σ_c Π q(c_j|x_j) table[c_1, …, c_d, :] for each row; unseen items have the code −1."""
        parts = zip(self.q, self.others, self.codes)
        rows = [np.vstack([q, other])[code] for q, other, code in parts]
        part = np.tensordot(rows[0], table, axes=(1, 0))
        for row in rows[1:]:
            part = np.einsum("em,em...->e...", row, part)
        return part


class Checker:
    """Everything that a certificate file says, computed again from the model and the data."""

    def __init__(self, document: Record, model: str | Path, data: str | Path) -> None:
        self.differences, self.notes, self.low, self.width = list[str](), list[str](), 0.0, 1.0
        self.said, self.kind, self.facts = (document[k] for k in ("certificate", "kind", "facts"))
        delta, candidates = self.said["delta"], self.facts.get("candidates", 1)
        is_share = isinstance(delta, float) and 0 < delta < 1
        if not (is_share and type(candidates) is int and candidates > 0):
            raise ValueError(f"δ = {delta} is no share, or {candidates} candidates are none.")
        self.name, self.loss = self.said["loss"], self.facts.get("loss", {})
        self.parts: list[Record] = self.said["strata"] or []
        shares = 1 + sum(part["n_observations"] > 0 for part in self.parts)  # hold together
        self.price = math.log(candidates / delta) + math.log(shares if self.parts else 1)
        self.given = [a for a in self.said["assumptions"] if a["status"] != "checked"]
        self.codes = {a["code"] for a in self.given}
        own = [a for a in self.said["assumptions"] if a not in self.given]
        self.made = {a["code"] for a in own}
        self.by_the_run = [a for a in own if a["code"] in BY_THE_RUN]
        is_ours = document["format"] == "gingham-certificate" and document["version"] == 2
        self.need(is_ours, "An unknown kind of file.")
        self.read_rows(data, document["data"])
        self.model = None if self.kind == "predictions" else read_model(model)
        self.digest = model_digest(model) if self.kind == "progressive" else None

    # what is said and what is found

    def need(self, holds: object, sentence: str) -> None:
        self.differences += [] if bool(holds) else [sentence]

    def same(self, what: str, said: Any, found: Any, close: float = 1e-7, size: float = 0) -> None:
        """Equal, numbers but for a share of their size or of the range they lie in."""
        exact = said is None or isinstance(found, (bool, str, type(None))) or isinstance(said, bool)
        equal = said == found if exact else abs(said - found) <= close * max(abs(found), size)
        self.need(equal, f"{what}: the certificate says {said}, computed again it is {found}.")

    def agrees(self, said: Record, found: tuple[float, float, float], close: float = 1e-7) -> None:
        """Value, loss on the sample and number of observations, of all rows or of a stratum."""
        (value, empirical, counted), low, width = found, self.low, self.width
        of = f" of {said['name']!r}" if "name" in said else ""
        self.same(f"value{of}", said["value"], low + width * value, close, width)
        self.same(f"loss on the sample{of}", said["empirical"], low + width * empirical, size=width)
        self.same(f"number of observations{of}", said["n_observations"], counted, 0.0)

    def read_rows(self, path: str | Path, data: Record) -> None:
        """Ids as text, labels and weights: the named columns or the first ones, then the next."""
        table = csv.reader(io.StringIO(Path(path).read_text("utf-8-sig")))
        head, *lines = [row for row in table if row]
        axes, label = data["columns"] or head[: len(data["kinds"])], data["label"]
        kinds = [*data["kinds"], *([label] if label else []), *["number"] * data["weighted"]]
        others = [name for name in head if name not in axes]
        names = data.get("names") or [*axes, *others][: len(kinds)]
        apart = len(set(names)) == len(names) >= len(kinds)  # no column stands for two
        if not (apart and set(names) <= set(head)):
            raise ValueError(f"The table needs {len(kinds)} columns, {names}; it has {head}.")
        if len(set(head)) < len(head):
            raise ValueError(f"Two columns of the table have one name: {head}.")
        by_column = self.facts.get("strata") == "column"
        roles = ["prediction" if self.kind == "predictions" else "id"] * (len(axes) - by_column)
        roles += ["stratum"] * by_column + ["label"] * bool(label) + ["weight"] * data["weighted"]
        self.roles = [f"{role} {name!r}" for role, name in zip(roles, names)]
        shown = [[line[head.index(name)] for line in lines] for name in names]
        for at, kind in enumerate(kinds):
            if kind == "number":
                shown[at] = [repr(float(v)) for v in shown[at]]
        digest = hashlib.sha256("".join(map(written, zip(*shown))).encode()).hexdigest()
        held = (digest, len(lines)) == (data["digest"], data["n_rows"])
        self.need(held, "The rows are not the certified ones.")
        self.columns: list[Array] = [np.array(c, dtype=object) for c in shown[: len(axes)]]
        self.strata = self.columns.pop() if self.facts.get("strata") == "column" else None
        d = len(self.columns)
        unnamed = ["row", "column"] if d == 2 else [f"axis {j + 1}" for j in range(d)]
        self.axes = list(data["columns"] or unnamed)
        own = shown[len(axes) : len(axes) + bool(label)]
        self.labels = np.array(own, float if label == "number" else None).ravel()
        ones = np.ones(len(lines))
        self.weights = np.array([float(v) for v in shown[-1]]) if data["weighted"] else ones

    def run(self) -> Checker:
        said, bound = self.said, BOUND[self.kind]
        self.same("bound", said["bound"], bound)
        statuses = {a["status"] for a in said["assumptions"]}
        self.need(statuses <= {"checked", "given"}, "An assumption is neither checked nor given.")
        told = TOLD.get(bound, set()) <= self.codes and self.made <= MADE | BY_THE_RUN
        came = CAME & self.codes if bound != "progressive" else FITTED & (self.made | self.codes)
        self.need(told and came, "What it rests on is not given.")
        at_any_time = bound in ("log-wealth", "progressive")
        self.need(at_any_time or not said["anytime"], "It is for one time only.")
        grid = self.facts.get("nu_grid", GRID)
        self.need(np.array_equal(grid, GRID), "The grid of ν is not the published one.")
        self.need_covered()
        self.choose_rows()
        worst = None if self.kind == "density" else self.check_loss()
        found = getattr(self, self.kind, self.grid)()
        self.agrees(said, found, 1e-6 if self.kind == "density" else 1e-7)
        self.same("largest loss", said["worst"], worst, size=self.width)
        has_rows = bool(self.parts) == ("strata" in self.facts)
        self.need(has_rows, "Strata are said without their rows.")
        if self.parts:
            self.check_strata(worst)
        return self

    def need_covered(self) -> None:
        """Stop where this checker has not learned the method, the loss or the structure."""
        grid = self.facts.get("posterior", {"plain grid": True})
        known = self.facts.get("method", "log-wealth") in ("log-wealth", "betting")
        by_jensen = self.loss.get("convex") and "mean" in self.said["predictor"]
        known = known and (self.name in OF_GAP or (self.name in OTHERS and not by_jensen))
        plain = grid["plain grid"] and not any(grid.get("frozen", ()))
        if not (known and plain and self.said["lower"] is None):
            raise ValueError("This checker does not know this method, loss, structure or side.")

    def choose_rows(self) -> None:
        """The rows that are counted, and that the model was fitted on none of them."""
        facts, columns, labels, every = self.facts, self.columns, self.labels, self.weights.copy()
        rows = np.array(facts.get("rows", range(len(every))), dtype=int)
        self.columns, drawn = [c[rows] for c in columns], every[rows]
        self.weights = counts = np.array(facts.get("counts", drawn), dtype=float)
        held = (counts % 1 == 0) & (counts >= 0) & (counts <= drawn)
        held &= np.bincount(rows)[rows] == 1
        self.need(held.all(), "More draws of a row count than it stands for, or parts of some.")
        if "rows" in facts or "counts" in facts:
            self.check_split(every, rows, columns, labels)
        elif self.kind == "holdout":
            code = "equal to rows of the fit"
            same = sum(a["facts"]["same"] for a in self.given if a["code"] == code)
            none = np.zeros(len(rows), bool)
            self.learned_from(self.model, columns, labels, none, allowed=same)
        self.labels = labels[rows[: len(labels)]]
        draws = "weights" in self.codes or (counts == 1).all()
        self.need(draws, "That rows of a weight are so many draws is not given.")

    def check_split(self, every: Array, rows: Array, columns: list[Array], labels: Array) -> None:
        """Which draws a split leaves out follows from its seed, or from somebody's word."""
        drawn, left = every.astype(int), every.copy()
        left[rows] -= self.weights
        seed, told = self.said["parameters"].get("seed"), "parts decided beforehand" in self.codes
        rng, n = np.random.default_rng(int(seed or 0)), int(left.sum())
        if (drawn == 1).all():
            first = np.bincount(rng.permutation(len(drawn))[:n], minlength=len(drawn))
        else:
            first = rng.multivariate_hypergeometric(drawn, n)
        held = told if seed is None else np.array_equal(first, left)
        self.need(held, "The seed leaves other rows out.")
        self.learned_from(self.model, columns, labels, left > 0, part=told)

    def check_strata(self, worst: float | None) -> None:
        """Each stratum by itself; those without tests are bounded by the largest loss."""
        how = {"column": "strata", "known/new": "strata by items"}[self.facts["strata"]]
        self.need(how in self.codes, "What the strata rest on is not given.")
        if self.kind not in ("predictions", "holdout", "progressive") or self.said["anytime"]:
            raise ValueError("This checker does not cover strata of this kind of certificate.")
        if self.strata is None and self.kind == "holdout":
            codes = Grid((), (), self.facts["posterior"]["items"], self.columns).codes
            self.strata = known_or_new([c >= 0 for c in codes], self.facts["posterior"]["modes"])
        if self.strata is None:
            raise ValueError("The strata of finished predictions stand in their table.")
        weights, tested = self.weights, self.tests if self.kind == "progressive" else self.strata
        names = [part["name"] for part in self.parts]
        self.need(len(set(names)) == len(names), "A stratum stands there twice.")
        self.need(set(tested) <= set(names), "A stratum that was tested is left out.")
        for part in self.parts:
            if part["name"] not in tested:
                shown = [part[k] for k in ("value", "empirical", "n_observations")]
                held = shown == [worst, None, 0]
                self.need(held, f"{part['name']!r} has no tests.")
            elif self.kind == "progressive":
                self.agrees(part, self.stratum(part["name"]))
            else:
                self.weights = np.where(self.strata == part["name"], weights, 0.0)
                self.agrees(part, self.grid() if self.kind == "holdout" else self.predictions())
        self.weights = weights

    # losses

    def check_loss(self) -> float:
        """Smallest loss, range and table by the definition of the loss; returns the largest."""
        letters, low = self.loss.get("alphabet"), 0.0
        if self.name in OF_GAP:
            self.ends = self.loss.get("bounds") or [min(letters), max(letters)]
            width = float(OF_GAP[self.name](self.ends[1] - self.ends[0]))
            self.table = OF_GAP[self.name](np.subtract.outer(letters or (), letters or ()))
        else:
            costs = self.loss["table"] if self.name != "zero-one" else 1.0 - np.eye(len(letters))
            self.table = np.array(costs, float)
            low = min(float(self.table.min()), 0.0)
            width = float(self.table.max() - low)
        self.low, self.width = low, width if width > 0 else 1.0
        held = np.allclose([self.loss["low"], self.loss["range"]], [self.low, self.width])
        held = held and np.allclose(self.loss.get("table") or self.table, self.table)
        self.need(held, "Range or table of the losses are not those of the loss.")
        told = [("labels", {"values": letters})] if letters else []
        if self.name in OF_GAP:
            told.append(("bounds", {"low": self.ends[0], "high": self.ends[1]}))
        stated = [(a["code"], a["facts"]) for a in self.given if a["code"] in ("labels", "bounds")]
        among = stated and all(one in told for one in stated)
        self.need(among, "Other labels are said to be possible than were counted with.")
        return self.low + self.width

    def losses(self, labels: Array, guess: Array) -> Array:
        """The loss of each prediction, scaled to 0 … 1; both must be among those stated."""
        letters, of_gap = self.loss.get("alphabet") or (), OF_GAP.get(self.name)
        stated = {v if isinstance(v, str) else float(v): code for code, v in enumerate(letters)}
        codes = [[stated.get(v, -1) for v in values.tolist()] for values in (labels, guess)]
        inside = not stated or min(codes[0] + ([] if of_gap else codes[1])) >= 0
        if of_gap:
            numbers = np.concatenate([labels, guess, list(stated)])
            low, high = self.ends
            room = 1e-8 * (high - low)
            inside = inside and low - room <= numbers.min() <= numbers.max() <= high + room
        if not inside:
            raise ValueError("A label or a prediction is not among those stated to be possible.")
        if of_gap:
            return of_gap(labels - guess) / self.width
        return np.asarray((self.table[tuple(codes)] - self.low) / self.width)

    # grids

    def in_model(self, stated: Record, facts: Record, rounding: float | None) -> Grid:
        """The grid that is certified; it, or its prior, is the one in the model file."""
        own = [*nodes(self.model, "assign", "answers"), *nodes(self.model, "memberships_")][0]
        alike = own["assign"] if "assign" in own else own["memberships_"]
        modes = [texts(mode["items"]) for mode in nodes(self.model, "name", "items")]
        pairs = list(zip(Grid(alike, 0, [], []).q, map(np.array, facts["memberships"])))
        held = all(q.shape == said.shape and np.abs(q - said).max() < 1e-9 for q, said in pairs)
        if rounding is not None:
            held = held and np.allclose(own["answers"][0], facts["answers"], 0, rounding + 1e-9)
            letters = [texts(a["values"]) for a in nodes(self.model, "values", "given")][:1]
            alphabet = [texts(self.loss.get("alphabet") or ())]
            self.need(letters in ([], alphabet), "The alphabet is not the model's.")
        held = held and (modes or facts["items"])[: len(pairs)] == facts["items"]
        self.need(held, "Items, memberships or answers are not those of the model file.")
        return Grid(stated["memberships"], stated["answers"], stated["items"], self.columns)

    def grid(self) -> tuple[float, float, float]:
        """In sample, holdout, split prior: value and loss on the sample, scaled; number of rows."""
        facts, rule, own = self.facts, self.said["predictor"], self.facts["posterior"]
        rounding, n = 0.5 * np.ptp(self.ends) if facts.get("rounded") else 0.0, self.weights.sum()
        grid = self.in_model(own, facts.get("prior", own), rounding)
        values, counts = self.gibbs_distribution(grid)
        if self.said["bound"] == "holdout" and rule != "gibbs":
            values, counts = self.losses(self.labels, self.predicted(grid, rule)), self.weights
        empirical = float(counts @ values / counts.sum())
        if self.said["bound"] == "holdout":
            return self.on_unseen(values, counts), empirical, n
        covered = rule == "gibbs" or (rule == "mean" and self.name in OF_GAP)
        self.need(covered, f"It does not cover predictor {rule!r}.")
        split = self.said["bound"] == "split-prior"
        price = self.price + (self.prior_price(grid) if split else self.exact_price(grid))
        paid = sum(nats for name, nats in self.said["terms"].items() if name != "grid of ν")
        self.same("price (nats)", paid, price)
        return log_wealth(values, counts, price, n), empirical, n

    def on_unseen(self, values: Array, counts: Array) -> float:
        """The bound of a predictor that was fixed before these rows."""
        if self.facts.get("method", "log-wealth") == "log-wealth":
            return log_wealth(values, counts, self.price, counts.sum())
        self.same("seed", self.said["parameters"].get("seed"), float(self.facts["seed"]), 0.0)
        return betting(np.repeat(values, counts.astype(int)), self.price, self.facts["seed"])

    def gibbs_distribution(self, grid: Grid) -> tuple[Array, Array]:
        """Scaled losses of the randomised predictor, and how often each is expected."""
        distinct, at = np.unique(grid.answers, return_inverse=True)
        shares = grid.mixed(np.eye(len(distinct))[at.reshape(grid.answers.shape)])
        shares *= self.weights[:, None]
        guess = distinct if self.name == "quadratic" else np.array(self.loss["alphabet"])[distinct]
        law = self.losses(np.repeat(self.labels, len(guess)), np.tile(guess, len(self.labels)))
        if self.name == "quadratic" and not self.loss.get("alphabet"):
            law = np.ceil(law**0.5 * 2**16 * (1 - 1e-12)) ** 2 / 2**32  # up to one of 2¹⁶ misses
        return law, shares.ravel()

    def exact_price(self, grid: Grid) -> float:
        """Who belongs where, what the cells answer, less the renamings of hard clusters."""
        price, answers = sum(map(partition_price, grid.q)), grid.answers
        if all(((q == 0) | (q == 1)).all() for q in grid.q):
            for q in grid.q:
                empty = int((~q.any(axis=0)).sum())
                price -= math.lgamma(q.shape[1] + 1) - math.lgamma(empty + 1)
        if self.name != "quadratic":
            return max(price + type_price(answers, len(self.table[0])), 0.0)
        size = int(self.facts["n_answers"])  # half a prior by type, half a uniform one, on a grid
        at = (answers - self.ends[0]) / np.ptp(self.ends) * (size - 1)
        held = size in ANSWER_GRIDS and np.allclose(at, np.rint(at), atol=1e-6)
        self.need(held, "Answers lie on no paid grid.")
        both = float(np.logaddexp(-type_price(np.rint(at), size), -answers.size * math.log(size)))
        return max(price + math.log(2 * len(ANSWER_GRIDS)) - both, 0.0)

    def prior_price(self, grid: Grid) -> float:
        """KL to .98 q⁰ + .02 of its mean; a cell of M keeps its answer with chance M/(M + 1)."""
        prior, cells = self.facts["prior"], grid.answers.size
        changed = int((grid.answers != np.array(prior["answers"])).sum())
        to_one = max(len(self.table[0]) - 1, 1) * (cells + 1)
        total = (cells - changed) * math.log((cells + 1) / cells) + changed * math.log(to_one)
        for q, before in zip(grid.q, map(np.array, prior["memberships"])):
            p, seen = 0.98 * before + 0.02 * before.mean(axis=0), q > 0
            total += float((q[seen] * np.log(q[seen] / p[seen])).sum())
        return total

    def predicted(self, grid: Grid, rule: str) -> Array:
        """The mean, median or commonest label of what the cells answer."""
        if grid.answers.dtype.kind == "f":
            return grid.mixed(grid.answers[..., None])[:, 0]
        letters = np.array(self.loss["alphabet"])
        law = grid.mixed(np.eye(len(letters))[grid.answers])
        if rule == "median":
            law = np.eye(len(letters))[(np.cumsum(law, axis=1) < 0.5 - 1e-12).sum(axis=1)]
        return law @ letters.astype(float) if rule == "mean" else letters[law.argmax(axis=1)]

    def learned_from(
        self, fit: object, columns: Sequence[Array], labels: Array, learned: Array,
        part: object = False, allowed: int | None = None,
    ) -> None:
        """The rows of a fit, by the sketch in the model file, are those it is said to be fitted on.

        ``part``: they are among these. ``allowed``: at most so many draws of other rows equal them.
        """
        sketch = nodes(fit, "keys", "limit")
        items = [np.asarray(mode["items"]) for mode in nodes(fit, "name", "items")[: len(columns)]]
        tables = [table for table in map(numbered, items) if table is not None]
        codes = Grid((), 0, items, columns).codes
        known = np.all([c >= 0 for c in codes], axis=0) if codes else np.zeros(len(learned), bool)
        listed = sketch and not (sketch[0]["symmetric"] or sketch[0]["complete"])
        if not (listed and len(tables) == len(columns) and known[learned].all()):
            sentence = "Which rows a model was fitted on is taken as it is stated."
            self.notes += [sentence] if sentence not in self.notes else []
            return
        ids = np.zeros(len(learned), np.uint64)
        for at, (table, code) in enumerate(zip(tables, codes)):
            ids += mixed(mixed(table) + np.uint64(at))[code]
        ids >>= np.uint64(16)
        if labels.dtype.kind == "U":
            values = np.asarray(numbered(labels))
        else:
            values = (labels.astype(np.float32).astype(float) + 0.0).view(np.uint64)
        keys = (ids << np.uint64(16)) | (mixed(values) >> np.uint64(48))
        known &= ids < np.uint64(sketch[0]["limit"])
        kept, own = np.asarray(sketch[0]["keys"]), np.unique(keys[known & learned])
        if allowed is not None:
            held = self.weights[known & np.isin(keys, kept)].sum() <= allowed
        else:
            held = np.isin(kept, own).all() if part else np.array_equal(kept, own)
        self.need(held, "A model was fitted on other rows than is said, by the sketch in its file.")

    # finished predictions, progressive tests, densities

    def predictions(self) -> tuple[float, float, float]:
        """Finished predictions stand in the table itself."""
        guess, n = np.array(self.columns[0].tolist()), float(self.weights.sum())
        guess = guess.astype(float) if self.labels.dtype.kind == "f" else guess
        values = self.losses(self.labels, guess)
        return self.on_unseen(values, self.weights), float(self.weights @ values) / n, n

    def progressive(self) -> tuple[float, float, float]:
        """(N/n)(ν − exp{mean ln(ν − Y_t) − ln(1/δ)/N}), ν from the warm-up, models before draws."""
        convex, chosen = self.name in OF_GAP, self.said["parameters"]
        self.plan_tests()
        ends = np.cumsum([end - at for at, end in self.spans])
        parts = np.split(np.array(self.facts["predictions"]), ends[:-1])
        labels = [self.labels[self.draws[at:end]] for at, end in self.spans]
        made = list(map(self.losses, labels, parts))
        first, starts, edges = self.spans[0][0], self.facts["references"], self.facts["edges"]
        stop = max(1, ([*starts, edges[0]][1] - first) // 10) if starts else len(made[0])
        warm, self.blocks = made[0][:stop], made[1 - len(edges) :]
        levels = [made[0][stop:], *made[1 : len(starts)]] if starts else []
        y, sizes = self.combined([*levels, np.concatenate(self.blocks)])
        many, n = len(y) / sizes[-1], sizes[-1]
        spread = n**2 * (1 / sizes[0] + 0.2 * sum(1 / size for size in sizes[1:]))
        nu = fixed_bet(warm, spread, self.price, 1 / many)
        self.warm, self.tested = (warm, self.draws[first : first + stop]), self.draws[edges[0] :]
        self.tests = self.tested if self.strata is None else self.strata[self.tested]
        self.same("ν", chosen["nu"], nu)
        self.same("price (nats)", sum(self.said["terms"].values()), self.price)
        covered = "mean of the members" if convex else "member drawn by its share"
        self.same("predictor", self.said["predictor"], covered)
        self.check_members(parts, self.facts["rule"] or ("mean" if convex else "mode"))
        gain = math.exp(np.log(nu - y).mean() - self.price / len(y))
        return min(1.0, many * (nu - gain)), many * y.mean(), len(y)

    def plan_tests(self) -> None:
        """The order of the draws, and which of them each model learns from and is tested on."""
        facts, chosen, edges = self.facts, self.said["parameters"], self.facts["edges"]
        shuffled, pilot, starts = facts["order"] == "shuffle", facts["pilot"], facts["references"]
        came = (SHUFFLED if shuffled else ARRIVED) & self.codes
        known = came and not (starts and (not shuffled or self.said["anytime"]))
        self.need(known, "The sampling order was not stated.")
        self.same("seed", chosen.get("seed"), float(facts["seed"]) if shuffled else None, 0.0)
        draws = np.repeat(np.arange(len(self.weights)), self.weights.astype(int))
        self.draws = np.random.default_rng(facts["seed"]).permutation(draws) if shuffled else draws
        self.learnable = np.ones(len(self.weights), bool)
        if facts.get("strata") == "known/new":
            self.learnable = self.known_to_members(self.draws[: edges[0]], shuffled)
        tested = [(at, edges[-1]) for at in starts] or [(pilot, edges[0])]
        self.spans, self.fits = [*tested, *pairwise(edges)], [0, *(starts or [pilot]), *edges]
        n_tests = sum(end - at for at, end in self.spans)
        divided = min(np.diff(self.fits)) > 0 and self.fits[1] == pilot
        whole = (edges[-1], n_tests) == (len(draws), len(facts["predictions"]))
        if not (divided and whole):
            raise ValueError("Warm-up and blocks do not divide the draws.")
        parts = len(starts) + 1  # of equal size, so that no choice is left to a forger
        even = [edges[0] * k // parts for k in range(1, parts)]
        keys = ("blocks", "warm_up", "candidates", "references")
        said = [{"references": 0, **chosen}[key] for key in keys]
        stated = [len(edges) - 1, facts["warm_up"], facts["candidates"], len(starts)]
        held = said == stated and (edges[0], even) == (facts["warm_up"], starts)
        self.need(held, "Blocks are not as stated.")

    @staticmethod
    def combined(levels: Sequence[Array]) -> tuple[Array, list[int]]:
        """Y_t = n Σ_j (B_j(t) − B_{j−1}(t))/N_j; reference j is tested on the last N_j draws."""
        y, sizes = np.zeros(len(levels[0])), [len(level) for level in levels]
        for level, before in zip(levels, [np.zeros(len(y)), *levels]):
            y[-len(level) :] += sizes[-1] / len(level) * (level - before[-len(level) :])
        return y, sizes

    def check_members(self, parts: Sequence[Array], rule: str) -> None:
        """The members in the model file learned from the draws before, and predict what is said."""
        edges, rows = self.facts["edges"], np.arange(len(self.weights))
        shares = np.diff(edges) / (edges[-1] - edges[0])
        held = [np.allclose(node["shares_"], shares) for node in nodes(self.model, "shares_")]
        self.same("members' digest", self.facts.get("model"), self.digest)
        if held != [True]:
            raise ValueError("The model file has not the tested members: see --save-predictor.")
        node = nodes(self.model, "shares_", "members_")[0]
        fits = [node["pilot_"], *node["references_"], *node["members_"]]  # in order
        for fit, end in zip(fits, self.fits[1:]):
            learned = np.isin(rows, self.draws[:end]) & self.learnable
            self.learned_from(fit, self.columns, self.labels, learned)
        own = nodes(self.model, "assign", "answers")
        offsets = any(fit.get("offsets") for fit in own)
        if len(own) != len(self.spans) or self.facts["clip"] or offsets:
            self.notes.append(STATED)
            return
        own = own[len(edges) - 1 :] + own[: len(edges) - 1]  # the file has the members first
        for number, (fit, (at, end), told) in enumerate(zip(own, self.spans, parts)):
            columns = [c[self.draws[at:end]] for c in self.columns]
            ids = [mode["items"] for mode in nodes(fit, "name", "items")]
            found = self.predicted(Grid(fit["assign"], fit["answers"][0], ids, columns), rule)
            numbers = found.dtype.kind in "iuf"
            alike = np.allclose(found, told, atol=1e-6) if numbers else texts(found) == texts(told)
            self.need(alike, f"Member {number} (0: the pilot) of the file predicts something else.")

    def known_to_members(self, warm: Array, shuffled: bool) -> Array:
        """Rows whose items all members know: those of the warm-up without the ids set aside."""
        rng = np.random.default_rng([self.facts["seed"], len(self.columns)])
        kept = np.ones(len(self.weights), bool)
        for column in self.columns if shuffled else ():
            ids = np.unique(column.astype(str))
            aside = ids[rng.permutation(len(ids))[: round(0.05 * len(ids))]]
            kept &= ~np.isin(column.astype(str), aside)
        warm = warm[kept[warm]]
        known = [np.isin(column, column[warm].tolist()) for column in self.columns]
        self.strata = known_or_new(known, self.axes)
        return np.asarray(kept & np.all(known, axis=0))

    def stratum(self, name: str) -> tuple[float, float, float]:
        """Σ_b share_b L_b by one martingale; a member that has no test may lose everything."""
        strata, cuts = np.asarray(self.strata), np.cumsum([len(x) for x in self.blocks])[:-1]
        mine = np.split(strata[self.tested] == name, cuts)
        own = [x[m] for x, m in zip(self.blocks, mine)]
        sizes, shares = np.array([len(x) for x in own]), np.array([len(x) for x in self.blocks])
        n, met, shares = int(sizes.sum()), sizes > 0, shares / shares.sum()
        weight = shares * n / np.maximum(sizes, 1)
        y, (losses, rows) = np.concatenate([w * x for w, x in zip(weight, own)]), self.warm
        warm = losses[strata[rows] == name]
        nu = fixed_bet(warm if len(warm) >= 20 else losses, n, self.price)
        nu, missing = max(nu, 1.001 * float(weight[met].max())), 1 - float(shares[met].sum())
        gain = math.exp(float(np.log(nu - y).mean()) - self.price / n)
        return min(1.0, missing + nu - gain), float(y.mean()) / (1 - missing), n

    def density(self) -> tuple[float, float, float]:
        """The largest code length of cells, and of each mode's items, that the sample allows."""
        own, n = self.facts["posterior"], int(self.weights.sum())
        grid, d = self.in_model(own, own, None), len(own["modes"])
        share, law = math.log((d + 1) / self.said["delta"]), self.weights[:, None] / n
        for q, code in zip(grid.q, grid.codes):
            law = (law[:, :, None] * q[code][:, None, :]).reshape(len(code), -1)
        law = law.sum(axis=0)
        paid = share + sum(map(partition_price, grid.q)) + ln_shtarkov(len(law), n)
        smooth = [(1 - s) * law + s / len(law) for s in SMOOTHINGS]
        means = [largest_mean(law, -np.log(p), paid / n) for p in smooth]
        total, length = min(means), 0.0
        table = smooth[int(np.argmin(means))].reshape([q.shape[1] for q in grid.q])
        for j, (known, code, size) in enumerate(zip(grid.q, grid.codes, self.facts["population"])):
            q = np.vstack([known, np.tile(grid.others[j], (size - len(known), 1))])  # unseen ones
            seen = np.bincount(code, self.weights, minlength=len(q)) / n
            ball = ln_shtarkov(len(q), n) + share
            options = [(1 - s) * seen + s / len(q) for s in SMOOTHINGS]
            clusters = [np.where(p @ q > 0, p @ q, 1.0) for p in options]
            costs = [q @ np.log(c) - np.log(p) for p, c in zip(options, clusters)]
            means = [largest_mean(seen, cost, ball / n) for cost in costs]
            best = int(np.argmin(means))
            paid, total = paid + ball, total + means[best]
            length -= float(self.weights @ np.log(options[best][code])) / n
            table = table / np.expand_dims(clusters[best], [k for k in range(d) if k != j])
        self.same("price (nats)", sum(self.said["terms"].values()), paid)
        length -= float(self.weights @ np.log(grid.mixed(table[..., None])[:, 0])) / n
        return total, length, n


# what is said


def sentence(assumption: Record) -> str:
    """What remains given, by its code and its facts."""
    facts = ", ".join(f"{name} = {str(value)[:60]}" for name, value in assumption["facts"].items())
    return f"{assumption['code']} ({facts})" if facts else str(assumption["code"])


def say(lines: Sequence[str]) -> None:
    """Print lines; a reader that has gone does not change what is found."""
    try:
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def verified(found: Checker) -> list[str]:
    """What holds, of what, and what it rests on."""
    said, n = found.said, len(found.weights)
    return [
        f"verified: {said['loss']} at most {said['value']:.6g} ({said['empirical']:.6g} observed), "
        f"δ = {said['delta']:g}, predictor {said['predictor']}, bound {said['bound']}, "
        f"{said['n_observations']:,} observations in {n:,} rows, "
        f"candidates {found.facts.get('candidates', 1)}.",
        *(
            f"verified: {part['name']!r} at most {part['value']:.6g}, "
            f"{part['n_observations']:,} tested."
            for part in found.parts
        ),
        f"verified: {', '.join(found.roles)} of the table.",
        "verified. It rests on what is given:",
        *map(sentence, found.given),
        *(f"{sentence(one)}, by the word of the run that made it" for one in found.by_the_run),
    ]


def main(certificate: Any = "c.json", model: Any = "-", data: Any = "data.csv") -> int:
    """Say what was verified (exit code 0), what differs (1), or what cannot be read (2)."""
    try:
        found = Checker(read_certificate(certificate), model, data).run()
    except (Unreadable, json.JSONDecodeError, UnicodeDecodeError) as error:
        say([f"cannot be read: {error}"])
        return 2
    except (ValueError, IndexError) as error:  # it was read, and does not hold together
        say([f"differs: {error}"])
        return 1
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, AttributeError) as error:
        say([f"cannot be read: {error!r}"])
        return 2
    lines = [f"differs: {text}" for text in found.differences]
    say(found.notes + (lines or verified(found)))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
