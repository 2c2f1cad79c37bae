"""An independent checker, written from the theorems: python -m gingham.verify c.json model.gingham data.csv."""

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
ANSWER_GRIDS, SMOOTHINGS = ([2**j + 1 for j in range(1, 13)], np.geomspace(1e-6, 1.0, 25))  # answers; uniform shares
BOUND = {"in sample": "log-wealth", "predictions": "holdout", "split prior": "split-prior"}  # of each kind of file
BOUND |= {kind: kind for kind in ("holdout", "progressive", "density")}
# what has to be given for each bound; for the others, how the rows came
TOLD = {
    "holdout": "not fitted on these",
    "split-prior": "prior from elsewhere",
    "progressive": "fixed before the first test",
}
CAME = {"independent", "independent or without replacement", "without replacement", "pairs among these nodes"}
CAME |= {"arriving"}
SHUFFLED, ARRIVED = {"one source", "all alike"}, {"order of arrival"}
# the keys of a file, and no others
KEYS = {
    "": "format version kind certificate data facts",
    "certificate": "value lower empirical worst loss bound predictor delta n_tuples chosen_from terms parameters "
    "assumptions anytime valid theorem latex reference",
    "data": "n_rows columns names kinds label weighted digest",
    "facts": "loss posterior nu_grid n_answers rounded population method candidates seed rows counts prior order "
    "warm_up pilot edges references rule clip predictions model",
    "assumption": "code status facts",
}
Array = np.ndarray[Any, Any]
Record = dict[str, Any]  # an object of a JSON file
OF_GAP: dict[str, Callable[..., Array]] = {"absolute": np.abs, "quadratic": np.square}  # of the error, convex
OTHERS = ("zero-one", "table", "code length (nats)")
lgamma = np.vectorize(math.lgamma)


class Unreadable(ValueError):
    """A file that no certificate could be read from."""


def bisect(too_far: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where a condition turns true between two numbers; the outer one where it never does."""
    for _ in range(100):
        inside, outside = (inside, at) if too_far(at := (inside + outside) / 2) else (at, outside)
    return outside


def log_wealth(losses: Array, weights: Array, price: float, n: float) -> float:
    """sup {L : mean over ν of exp{N [E ln(ν − X) − ln(ν − L)]} ≤ e^price}, where the price includes ln 1/δ."""
    gains, price = (
        np.array([weights @ np.log(nu - losses) for nu in GRID]) / weights.sum(),
        price + math.log(len(GRID)),
    )
    return bisect(lambda at: bool(np.logaddexp.reduce(n * (gains - np.log(GRID - at))) > price), 0.0, 1.0)


def betting(losses: Array, price: float, seed: int) -> float:
    """sup {L : mean over orders of Π (ν_t − X_t)/(ν_t − L) ≤ e^price}, ν_t from the losses before t."""
    n, orders = len(losses), max(1, min(32, 2**16 // len(losses)))
    x, seen = (np.random.default_rng(seed).permuted(np.tile(losses, (orders, 1)), axis=1), np.arange(2, n + 2))
    means = (0.5 + np.cumsum(x, axis=1)) / seen
    spread = (0.25 + np.cumsum((x - means) ** 2, axis=1)) / seen
    before, variance = (np.insert(means[:, :-1], 0, 0.5, axis=1), np.insert(spread[:, :-1], 0, 0.25, axis=1))
    nu, meet = (np.maximum(before + np.sqrt(variance * n / (2 * price)), 1.001), price + math.log(orders))
    return bisect(lambda at: bool(np.logaddexp.reduce(np.log((nu - x) / (nu - at)).sum(axis=1)) > meet), 0.0, 1.0)


def partition_price(q: Array) -> float:
    """KL of independent draws from q(c|x) against: number of clusters, their sizes, who belongs where."""
    n, m = q.shape
    law, used = (np.eye(1, n + 1).repeat(m, axis=0), q[q > 0])  # of the number of items in each cluster
    for row in q:  # the last column is empty until the last item, so that nothing comes round
        law = law * (1 - row[:, None]) + np.roll(law, 1, axis=1) * row[:, None]
    placed = math.lgamma(n + 1) - (law @ lgamma(np.arange(1, n + 2))).sum() + (used * np.log(used)).sum()
    return float(math.log(m * (m + 1)) + math.lgamma(n + m) - math.lgamma(m) - math.lgamma(n + 1) + placed)


def type_price(cells: Array, size: int) -> float:
    """How often each of ``size`` answers occurs, then in which cells."""
    placed = math.lgamma(cells.size + 1) - sum(math.lgamma(c + 1) for c in np.unique(cells, return_counts=True)[1])
    return math.lgamma(cells.size + size) - math.lgamma(size) - math.lgamma(cells.size + 1) + placed


def ln_shtarkov(size: int, n: int) -> float:
    """C(1) = 1, C(2) = Σ_k C(N, k) (k/N)^k (1 − k/N)^(N−k), C(k + 2) = C(k + 1) + (N/k) C(k)."""
    k, facts = np.arange(1, n), lgamma(np.arange(1, n + 2))
    logs = facts[n] - facts[1:n] - facts[n - 1 : 0 : -1] + k * np.log(k / n) + (n - k) * np.log(1 - k / n)
    before, last = 0.0, math.log(2 + float(np.exp(logs).sum()))
    for j in range(1, size - 1):
        before, last = last, float(np.logaddexp(last, math.log(n / j) + before))
    return 0.0 if size == 1 else last


def largest_mean(weights: Array, values: Array, epsilon: float) -> float:
    """sup {Σ p v : KL(p̂‖p) ≤ ε} = min over ν ≥ max v of ν − exp(Σ p̂ ln(ν − v) − ε), convex in ν."""
    top, p, gaps = float(values.max()), weights[weights > 0], values.max() - values[weights > 0]
    low, high = np.log(max(top - values.min(), 1e-300)) + np.array([-30.0, 14.0])  # of ln(ν − max v)
    for _ in range(16):
        t = np.linspace(low, high, 21)
        duals = top + np.exp(t) - np.exp(np.log(np.exp(t)[:, None] + gaps) @ p - epsilon)
        low, high = t[max(duals.argmin() - 1, 0)], t[min(duals.argmin() + 1, 20)]
    return min(top, float(duals.min()))


def read_model(path: str | Path) -> object:
    """The state of a model file as nested lists, objects and arrays."""
    archive = zipfile.ZipFile(path)

    def plain(node: Record) -> object:
        items = node.get("items") if "$" in node else node
        return np.load(io.BytesIO(archive.read(node["name"]))) if node.get("$") == "array" else items

    return json.loads(archive.read("manifest.json"), object_hook=plain)["state"]


def model_digest(path: str | Path) -> str:
    """SHA-256 of what a model file holds of the model: its JSON, then its arrays in the order of their names."""
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
    """The 64 bits by which model files know whole numbers and texts; None for ids of other kinds."""
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        values = values.astype(str)
    if values.dtype.kind in "iu":
        return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    if values.dtype.kind != "U":
        return None
    letters = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1).astype(np.uint64)
    factors = mixed(np.arange(1, letters.shape[1] + 1)) | np.uint64(1)
    return np.asarray((letters * factors).sum(axis=1, dtype=np.uint64))


def nodes(tree: object, *keys: str) -> list[Record]:
    """All objects of a nested state that have the given keys, in order."""
    inner = list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list) else []
    found = [tree] if isinstance(tree, dict) and all(key in tree for key in keys) else []
    return found + [node for value in inner for node in nodes(value, *keys)]


def texts(values: Array | Sequence[object]) -> list[str]:
    return [str(v) for v in (values.tolist() if isinstance(values, np.ndarray) else values)]


class Grid:
    """Memberships and answers, the codes of rows in them, and the memberships of items nobody has seen."""

    def __init__(self, q: Sequence[Any], answers: object, items: Any, columns: Sequence[Array]) -> None:
        self.answers, self.q = (np.array(answers), [np.array(m, float) / np.sum(m, 1, float, keepdims=True) for m in q])
        self.others = [(m.sum(axis=0) + 1) / sum(m.shape) for m in self.q]
        index = [{item: code for code, item in enumerate(texts(mode))} for mode in items]
        self.codes = [np.array([ids.get(v, -1) for v in column], dtype=int) for ids, column in zip(index, columns)]

    def mixed(self, table: Array) -> Array:
        """Σ_c Π q(c_j|x_j) table[c_1, …, c_d, :] for each row; unseen items have the code −1."""
        rows = [np.vstack([q, other])[code] for q, other, code in zip(self.q, self.others, self.codes)]
        part = np.tensordot(rows[0], table, axes=(1, 0))
        for row in rows[1:]:
            part = np.einsum("em,em...->e...", row, part)
        return part


class Checker:
    """Everything that a certificate file says, computed again from the model and the data."""

    def __init__(self, document: Record, model: str | Path, data: str | Path) -> None:
        self.differences, self.notes, self.low, self.width = list[str](), list[str](), 0.0, 1.0
        self.said, self.kind, self.facts = (document["certificate"], document["kind"], document["facts"])
        delta, candidates = self.said["delta"], self.facts.get("candidates", 1)
        if not (isinstance(delta, float) and 0 < delta < 1 and type(candidates) is int and candidates > 0):
            raise ValueError(f"δ = {delta} does not lie strictly between 0 and 1, or {candidates} candidates are none.")
        self.name, self.loss, self.price = (self.said["loss"], self.facts.get("loss", {}), math.log(candidates / delta))
        for place in ("certificate", "data", "facts"):
            known_keys(document[place], place)
        for assumption in self.said["assumptions"]:
            known_keys(assumption, "assumption")
        self.given = [a for a in self.said["assumptions"] if a["status"] != "checked"]
        self.codes = {a["code"] for a in self.given}
        self.need(document["format"] == "gingham-certificate" and document["version"] == 2, "An unknown kind of file.")
        self.read_rows(data, document["data"])
        self.model = None if self.kind == "predictions" else read_model(model)
        self.digest = model_digest(model) if self.kind == "progressive" else None

    def need(self, holds: object, sentence: str) -> None:
        self.differences += [] if bool(holds) else [sentence]

    def same(self, what: str, said: Any, found: Any, close: float = 1e-7, scale: float = 0.0) -> None:
        """Equal, numbers but for a share of their size or of the range they lie in."""
        exact = said is None or isinstance(found, (bool, str, type(None))) or isinstance(said, bool)
        equal = said == found if exact else abs(said - found) <= close * max(abs(found), scale)
        self.need(equal, f"{what}: the certificate says {said}, computed again it is {found}.")

    def read_rows(self, path: str | Path, data: Record) -> None:
        """Ids as text, labels and weights: the named columns or the first ones, then the next, then the next."""
        head, *lines = [row for row in csv.reader(io.StringIO(Path(path).read_text("utf-8-sig"))) if row]
        axes = data["columns"] or head[: len(data["kinds"])]
        kinds = [*data["kinds"], *([data["label"]] if data["label"] else []), *["number"] * data["weighted"]]
        names = data.get("names") or [*axes, *[name for name in head if name not in axes]][: len(kinds)]
        if len(names) < len(kinds) or not set(names) <= set(head):
            raise ValueError(f"The table needs the columns {names} and {len(kinds)} in all; it has {head}.")
        table = [[line[head.index(name)] for line in lines] for name in names]
        shown = [[repr(float(v)) for v in c] if kind == "number" else c for c, kind in zip(table, kinds)]
        digest = hashlib.sha256("".join(map(written, zip(*shown))).encode()).hexdigest()
        self.need((digest, len(lines)) == (data["digest"], data["n_rows"]), "The rows are not the certified ones.")
        self.columns: list[Array] = [np.array(c, dtype=object) for c in shown[: len(axes)]]
        self.labels = np.array(shown[len(axes) :][:1], float if data["label"] == "number" else None).ravel()
        self.weights = np.array([float(v) for v in shown[-1]]) if data["weighted"] else np.ones(len(lines))

    def run(self) -> Checker:
        said, facts, bound = self.said, self.facts, BOUND[self.kind]
        self.same("bound", said["bound"], bound)
        self.same("valid", said["valid"], "violated" not in [a["status"] for a in said["assumptions"]])
        self.need({TOLD[bound]} & self.codes if bound in TOLD else CAME & self.codes, "What it rests on is not given.")
        self.need(not said["anytime"] or bound in ("log-wealth", "progressive"), "It is for one time only.")
        self.need(np.array_equal(facts.get("nu_grid", GRID), GRID), "The grid of ν is not the published one.")
        grid, method = (facts.get("posterior", {"plain grid": True}), facts.get("method", "log-wealth"))
        known = method in ("log-wealth", "betting") and self.name in (*OF_GAP, *OTHERS)
        known = known and not (self.name not in OF_GAP and self.loss.get("convex") and "mean" in said["predictor"])
        if not (known and grid["plain grid"] and not any(grid.get("frozen", ())) and said["lower"] is None):
            raise ValueError("This checker does not cover this method, loss, structure or lower bound.")
        rows, every = (np.array(facts.get("rows", range(len(self.weights))), dtype=int), self.weights.copy())
        columns, labels = self.columns, self.labels  # of all rows
        self.columns, drawn = [c[rows] for c in self.columns], self.weights[rows]
        self.weights = np.array(facts.get("counts", drawn), dtype=float)  # a split divides the draws of a row
        held = (self.weights % 1 == 0) & (self.weights >= 0) & (self.weights <= drawn) & (np.bincount(rows)[rows] == 1)
        self.need(held.all(), "More draws of a row are counted than it stands for, or parts of some.")
        if "rows" in facts or "counts" in facts:  # a split: its seed, or somebody's word, says what it leaves out
            whole, every[rows] = every.astype(int), every[rows] - self.weights
            seed, size, left = said["parameters"].get("seed"), len(every), int(every.sum())
            rng, told = (np.random.default_rng(int(seed or 0)), "parts decided beforehand" in self.codes)
            ones, mixed = ((whole == 1).all(), rng.multivariate_hypergeometric)  # rows of one draw each are permuted
            first = np.isin(range(size), rng.permutation(size)[:left]) if ones else mixed(whole, left)
            self.need(told if seed is None else np.array_equal(first, every), "The seed leaves other rows out.")
            self.learned_from(self.model, columns, labels, every > 0, part=told)
        elif self.kind == "holdout":
            same = sum(a["facts"]["same"] for a in self.given if a["code"] == "equal to rows of the fit")
            self.learned_from(self.model, columns, labels, np.zeros(len(rows), bool), allowed=same)
        self.labels = self.labels[rows[: len(self.labels)]]
        worst = None if self.kind == "density" else self.check_loss()
        value, empirical, counted = getattr(self, self.kind, self.grid)()
        width, close = self.width, 1e-6 if self.kind == "density" else 1e-7
        self.same("value", said["value"], self.low + width * value, close, width)
        self.same("loss on the sample", said["empirical"], self.low + width * empirical, scale=width)
        self.same("number of tuples", said["n_tuples"], counted, 0.0)
        self.same("largest loss", said["worst"], worst, scale=width)
        return self

    def check_loss(self) -> float:
        """Smallest loss, range and table, from the definition of the loss; returns the largest loss."""
        letters, self.table = self.loss.get("alphabet"), np.zeros((0, 0))
        if self.name in OF_GAP:
            self.ends = self.loss.get("bounds") or [min(letters), max(letters)]
            width = float(OF_GAP[self.name](self.ends[1] - self.ends[0]))
            self.table = OF_GAP[self.name](np.subtract.outer(letters or (), letters or ()))
        else:
            self.table = 1.0 - np.eye(len(letters)) if self.name == "zero-one" else np.array(self.loss["table"], float)
            self.low, width = (min(float(self.table.min()), 0.0), float(self.table.max() - min(self.table.min(), 0.0)))
        stated, self.width = self.loss.get("table") or self.table, width if width > 0 else 1.0
        held = np.allclose([self.loss["low"], self.loss["range"]], [self.low, self.width])
        self.need(held and np.allclose(stated, self.table), "Range or table of the losses are not those of the loss.")
        told = [("labels", {"values": letters})] if letters else []
        if self.name in OF_GAP:
            told.append(("bounds", {"low": self.ends[0], "high": self.ends[1]}))
        stated = [(a["code"], a["facts"]) for a in self.given if a["code"] in ("labels", "bounds")]
        self.need(
            stated and all(one in told for one in stated),
            "Other labels are said to be possible than were counted with.",
        )
        return self.low + self.width

    def losses(self, labels: Array, guess: Array) -> Array:
        """The loss of each prediction, scaled to 0 … 1; labels and predictions must be among those stated."""
        stated = {v if isinstance(v, str) else float(v): code for code, v in enumerate(self.loss.get("alphabet") or ())}
        codes = [[stated.get(v, -1) for v in values.tolist()] for values in (labels, guess)]
        inside = not stated or min(codes[0] + codes[1] * (self.name not in OF_GAP)) >= 0
        if self.name in OF_GAP:
            numbers, room = (np.concatenate([labels, guess, list(stated)]), 1e-8 * (self.ends[1] - self.ends[0]))
            inside = inside and self.ends[0] - room <= numbers.min() <= numbers.max() <= self.ends[1] + room
        if not inside:
            raise ValueError("A label or a prediction is not among those that were stated to be possible.")
        of_gap = OF_GAP.get(self.name)
        return of_gap(labels - guess) / self.width if of_gap else (self.table[tuple(codes)] - self.low) / self.width

    def in_model(self, stated: Record, facts: Record, rounding: float | None) -> Grid:
        """The grid that is certified; it, or its prior, is the one in the model file."""
        own = [*nodes(self.model, "assign", "answers"), *nodes(self.model, "row_memberships_")][0]
        alike = own["assign"] if "assign" in own else [own["row_memberships_"], own["column_memberships_"]]
        modes = [texts(mode["items"]) for mode in nodes(self.model, "name", "items")] or facts["items"]
        pairs = list(zip(Grid(alike, 0, [], []).q, map(np.array, facts["memberships"])))
        held = all(q.shape == said.shape and np.abs(q - said).max() < 1e-9 for q, said in pairs)
        if rounding is not None:
            held = held and np.allclose(own["answers"][0], facts["answers"], 0, rounding + 1e-9)
            letters = [texts(a["values"]) for a in nodes(self.model, "values", "given")][:1]
            self.need(letters in ([], [texts(self.loss.get("alphabet") or ())]), "The alphabet is not the model's.")
        held = held and modes[: len(pairs)] == facts["items"]
        self.need(held, "Items, memberships or answers are not those of the model file.")
        return Grid(stated["memberships"], stated["answers"], stated["items"], self.columns)

    def grid(self) -> tuple[float, float, float]:
        """In sample, holdout and split prior: value and loss on the sample, scaled, and the number of tuples."""
        facts, bound, own, n = (self.facts, self.said["bound"], self.facts["posterior"], float(self.weights.sum()))
        rule = self.said["predictor"]
        grid = self.in_model(own, facts.get("prior", own), 0.5 * np.ptp(self.ends) if facts.get("rounded") else 0.0)
        values, counts = self.gibbs_law(grid)
        if bound == "holdout" and rule != "gibbs":
            values, counts = self.losses(self.labels, self.predicted(grid, rule)), self.weights
        empirical = float(counts @ values / counts.sum())
        if bound == "holdout":
            return self.on_unseen(values, counts), empirical, n
        self.need(rule == "gibbs" or (rule == "mean" and self.name in OF_GAP), f"It does not cover predictor {rule!r}.")
        price = self.price + (self.prior_price(grid) if bound == "split-prior" else self.exact_price(grid))
        self.same("price (nats)", sum(v for k, v in self.said["terms"].items() if k != "grid of ν"), price)
        return log_wealth(values, counts, price, n), empirical, n

    def on_unseen(self, values: Array, counts: Array) -> float:
        if self.facts.get("method", "log-wealth") == "log-wealth":
            return log_wealth(values, counts, self.price, counts.sum())
        self.same("seed", self.said["parameters"].get("seed"), float(self.facts["seed"]), 0.0)
        return betting(np.repeat(values, counts.astype(int)), self.price, self.facts["seed"])

    def gibbs_law(self, grid: Grid) -> tuple[Array, Array]:
        """Scaled losses of the randomised predictor, and how often each is expected."""
        distinct, at = np.unique(grid.answers, return_inverse=True)
        shares = grid.mixed(np.eye(len(distinct))[at.reshape(grid.answers.shape)]) * self.weights[:, None]
        guess = distinct if self.name == "quadratic" else np.array(self.loss["alphabet"])[distinct]
        law = self.losses(np.repeat(self.labels, len(guess)), np.tile(guess, len(self.labels)))
        coarse = self.name == "quadratic" and not self.loss.get("alphabet")  # misses go up to the next of 2¹⁶ steps
        return np.ceil(law**0.5 * 2**16 * (1 - 1e-12)) ** 2 / 2**32 if coarse else law, shares.ravel()

    def exact_price(self, grid: Grid) -> float:
        """Who belongs where, what the cells answer, less the renamings of hard clusters."""
        price, answers = sum(map(partition_price, grid.q)), grid.answers
        if all(((q == 0) | (q == 1)).all() for q in grid.q):
            price -= sum(math.lgamma(q.shape[1] + 1) - math.lgamma((~q.any(axis=0)).sum() + 1) for q in grid.q)
        if self.name != "quadratic":
            return max(price + type_price(answers, len(self.table[0])), 0.0)
        size = int(self.facts["n_answers"])  # half a prior by type, half a uniform one, on one of a few grids
        at = (answers - self.ends[0]) / np.ptp(self.ends) * (size - 1)
        self.need(size in ANSWER_GRIDS and np.allclose(at, np.rint(at), atol=1e-6), "Answers lie on no paid grid.")
        both = float(np.logaddexp(-type_price(np.rint(at), size), -answers.size * math.log(size)))
        return max(price + math.log(2 * len(ANSWER_GRIDS)) - both, 0.0)

    def prior_price(self, grid: Grid) -> float:
        """KL to .98 q⁰ + .02 of its mean, and each of M cells keeps its answer with probability M/(M + 1)."""
        prior, cells, others = (self.facts["prior"], grid.answers.size, max(len(self.table[0]) - 1, 1))
        changed = int((grid.answers != np.array(prior["answers"])).sum())
        total = (cells - changed) * math.log((cells + 1) / cells) + changed * math.log(others * (cells + 1))
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
        self,
        fit: object,
        columns: Sequence[Array],
        labels: Array,
        learned: Array,
        part: object = False,
        allowed: int | None = None,
    ) -> None:
        """The rows of a fit, by the sketch of them in the model file, are those it is said to have learned from.

        ``part``: they are among these. ``allowed``: so many draws at most of the other rows are equal to some of them.
        """
        sketch, kinds = nodes(fit, "keys", "limit"), nodes(fit, "name", "items")[: len(columns)]
        items = [np.asarray(mode["items"]) for mode in kinds]
        tables = [numbered(one) for one in items]
        codes = Grid((), 0, items, columns).codes
        known = np.all([code >= 0 for code in codes], axis=0) if codes else np.zeros(len(learned), bool)
        grid = len(tables) == len(columns) and all(one is not None for one in tables)
        listed = sketch and not (sketch[0]["symmetric"] or sketch[0]["complete"])
        if not (grid and listed and known[learned].all()):
            sentence = "Which rows a model was fitted on is taken as it is stated."
            self.notes += [sentence] if sentence not in self.notes else []
            return
        ids = np.zeros(len(learned), np.uint64)
        for at, (table, code) in enumerate(zip(tables, codes)):
            ids += mixed(mixed(table) + np.uint64(at))[code]  # type: ignore[arg-type]
        rounded = np.array([] if labels.dtype.kind == "U" else labels, np.float32).astype(float) + 0.0
        texts_or_numbers = numbered(labels) if labels.dtype.kind == "U" else rounded.view(np.uint64)
        ids >>= np.uint64(16)
        keys = (ids << np.uint64(16)) | (mixed(texts_or_numbers) >> np.uint64(48))  # type: ignore[arg-type]
        known &= ids < np.uint64(sketch[0]["limit"])
        kept, own = np.asarray(sketch[0]["keys"]), np.unique(keys[known & learned])
        if allowed is not None:
            held = self.weights[known & np.isin(keys, kept)].sum() <= allowed
        else:
            held = np.isin(kept, own).all() if part else np.array_equal(kept, own)
        self.need(held, "A model was fitted on other rows than is said, by the sketch of them in its file.")

    def predictions(self) -> tuple[float, float, float]:
        """Finished predictions stand in the table itself."""
        guess, n = np.array(self.columns[0].tolist()), float(self.weights.sum())
        values = self.losses(self.labels, guess.astype(float) if self.labels.dtype.kind == "f" else guess)
        return self.on_unseen(values, self.weights), float(self.weights @ values) / n, n

    def progressive(self) -> tuple[float, float, float]:
        """(N/n)(ν − exp{mean ln(ν − Y_t) − ln(1/δ)/N}), ν from the warm-up, losses of models that come before draws."""
        facts, chosen, edges, convex = (self.facts, self.said["parameters"], self.facts["edges"], self.name in OF_GAP)
        guess, draws = np.array(facts["predictions"]), np.repeat(np.arange(len(self.weights)), self.weights.astype(int))
        shuffled, pilot, starts = (facts["order"] == "shuffle", facts["pilot"], facts.get("references", []))
        came = (SHUFFLED if shuffled else ARRIVED) & self.codes
        order_known = came and not (starts and (not shuffled or self.said["anytime"]))
        self.need(order_known, "The sampling order was not stated.")
        self.same("seed", chosen.get("seed"), float(facts["seed"]) if shuffled else None, 0.0)
        draws = np.random.default_rng(facts["seed"]).permutation(draws) if shuffled else draws
        spans = [*([(at, edges[-1]) for at in starts] or [(pilot, edges[0])]), *pairwise(edges)]
        fits, cuts = ([0, *(starts or [pilot]), *edges], np.cumsum([end - at for at, end in spans]).tolist())
        if not (min(np.diff(fits)) > 0 and fits[1] == pilot and (edges[-1], cuts[-1]) == (len(draws), len(guess))):
            raise ValueError("Warm-up and blocks do not divide the draws.")
        even = [edges[0] * k // (len(starts) + 1) for k in range(1, len(starts) + 1)]  # no choice is left to a forger
        said = [{"references": 0, **chosen}[key] for key in ("blocks", "warm_up", "candidates", "references")]
        stated = [len(edges) - 1, facts["warm_up"], facts["candidates"], len(starts)]
        self.need(said == stated and (edges[0], even) == (facts["warm_up"], starts), "Blocks are not as stated.")
        parts, y = np.split(guess, cuts[:-1]), np.zeros(0)
        made = [self.losses(self.labels[draws[at:end]], told) for (at, end), told in zip(spans, parts)]
        warm, x = (
            made[0][: max(1, (fits[2] - pilot) // 10) if starts else None],
            np.concatenate(made[1 - len(edges) :]),
        )
        levels = [*[made[0][len(warm) :], *made[1 : len(starts)]][: len(starts)], x]
        sizes = [len(level) for level in levels]  # reference j is tested on the last N_j draws, the members on n
        for level, before in zip(levels[::-1], [*levels[-2::-1], np.zeros(sizes[0])]):
            y = np.append(np.zeros(len(level) - len(y)), y) + sizes[-1] / len(level) * (level - before[-len(level) :])
        many, spread = (len(y) / sizes[-1], sizes[-1] ** 2 * (1 / sizes[0] + 0.2 * sum(1 / size for size in sizes[1:])))
        nu = max(float(warm.mean() / many + warm.std() * math.sqrt(spread / (2 * self.price))), 1.001)
        self.same("ν", chosen["nu"], nu)
        self.same("price (nats)", sum(self.said["terms"].values()), self.price)
        self.same("predictor", self.said["predictor"], "mean of the members" if convex else "member drawn by its share")
        held = [np.allclose(node["shares_"], np.diff(edges) / sizes[-1]) for node in nodes(self.model, "shares_")]
        self.same("members' digest", self.facts.get("model"), self.digest)
        if held != [True]:
            raise ValueError("The model file has not the members that were tested: name that of --save-predictor.")
        node = nodes(self.model, "shares_", "members_")[0]  # in order: pilot, references after it, members
        for fit, end in zip([node["pilot_"], *node["references_"], *node["members_"]], fits[1:]):
            learned = np.isin(np.arange(len(self.weights)), draws[:end])
            self.learned_from(fit, self.columns, self.labels, learned)
        own, rule = (nodes(self.model, "assign", "answers"), facts["rule"] or ("mean" if convex else "mode"))
        plain = len(own) == len(spans) and not facts["clip"] and not any(fit.get("offsets") for fit in own)
        self.notes += [] if plain else ["What members that are no plain grids predicted is taken as it is stated."]
        own = own[len(edges) - 1 :] + own[: len(edges) - 1]  # the file has the members first
        for number, (fit, (at, end), told) in enumerate(zip(own, spans, parts) if plain else ()):
            columns, ids = ([c[draws[at:end]] for c in self.columns], [m["items"] for m in nodes(fit, "name", "items")])
            again = self.predicted(Grid(fit["assign"], fit["answers"][0], ids, columns), rule)
            alike = np.allclose(again, told, atol=1e-6) if again.dtype.kind in "iuf" else texts(again) == texts(told)
            self.need(alike, f"Member {number} (0: the pilot) of the model file predicts something else.")
        return (min(1.0, many * (nu - math.exp(np.log(nu - y).mean() - self.price / len(y)))), many * y.mean(), len(y))

    def density(self) -> tuple[float, float, float]:
        """The largest code length of cells, and of each mode's items, over the laws that the sample allows."""
        own, n = self.facts["posterior"], int(self.weights.sum())
        grid, share = (self.in_model(own, own, None), math.log((len(own["modes"]) + 1) / self.said["delta"]))
        law, length = self.weights[:, None] / n, 0.0
        for q, code in zip(grid.q, grid.codes):
            law = (law[:, :, None] * q[code][:, None, :]).reshape(len(code), -1)
        law, paid = law.sum(axis=0), share + sum(map(partition_price, grid.q))
        smooth, paid = ([(1 - s) * law + s / len(law) for s in SMOOTHINGS], paid + ln_shtarkov(len(law), n))
        total, cells = min((largest_mean(law, -np.log(p), paid / n), i) for i, p in enumerate(smooth))
        table = smooth[cells].reshape([q.shape[1] for q in grid.q])
        for j, (known, code, size) in enumerate(zip(grid.q, grid.codes, self.facts["population"])):
            q = np.vstack([known, np.tile(grid.others[j], (size - len(known), 1))])  # with the items nobody has seen
            seen, ball = (np.bincount(code, self.weights, minlength=len(q)) / n, ln_shtarkov(len(q), n) + share)
            options = [(p, np.where(p @ q > 0, p @ q, 1.0)) for s in SMOOTHINGS for p in [(1 - s) * seen + s / len(q)]]
            means = [largest_mean(seen, q @ np.log(c) - np.log(p), ball / n) for p, c in options]
            paid, (p, c) = paid + ball, options[int(np.argmin(means))]
            total, length = total + min(means), length - float(self.weights @ np.log(p[code])) / n
            table = table / np.expand_dims(c, [k for k in range(len(grid.q)) if k != j])
        self.same("price (nats)", sum(self.said["terms"].values()), paid)
        return (total, length - float(self.weights @ np.log(grid.mixed(table[..., None])[:, 0])) / n, n)


def written(row: Sequence[str]) -> str:
    """A row of texts, each after its length, so that no two rows are written alike."""
    return "".join(f"{len(text)}:{text}" for text in row) + ";"


def known_keys(found: Record, place: str) -> None:
    """Refuse what this checker would pass over in silence."""
    unknown = [key for key in found if key not in KEYS[place].split()]
    if unknown:
        raise Unreadable(f"{unknown[0]!r} is no key of a certificate file{f', in {place!r}' * bool(place)}.")


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
    text = Path(path).read_text("utf-8")
    document = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_int=whole, parse_constant=finite)
    known_keys(document, "")
    return dict(document)


def sentence(assumption: Record) -> str:
    """What remains given, by its code and its facts."""
    facts = ", ".join(f"{name} = {str(value)[:60]}" for name, value in assumption["facts"].items())
    return f"{assumption['code']}{f' ({facts})' * bool(facts)}"


def say(lines: Sequence[str]) -> None:
    """Print lines; a reader that has gone does not change what is found."""
    try:
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(certificate: str | Path = "c.json", model: str | Path = "-", data: str | Path = "data.csv") -> int:
    """Say what was verified (exit code 0), what differs (1), or that something cannot be read (2)."""
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
    said = found.said
    held = [
        f"verified: {said['loss']} at most {said['value']:.6g} ({said['empirical']:.6g} observed), "
        f"δ = {said['delta']:g}, predictor {said['predictor']}, bound {said['bound']}, "
        f"{said['n_tuples']:,} observations in {len(found.weights):,} rows, "
        f"candidates {found.facts.get('candidates', 1)}.",
        "verified. It rests on what is given:",
        *map(sentence, found.given),
    ]
    lines = [f"differs: {text}" for text in found.differences] or held
    say(found.notes + lines)
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
