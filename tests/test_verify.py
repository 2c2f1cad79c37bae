"""The independent checker: true certificates pass, tampered ones are found, and it shares no code with gingham."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import pickle
import re
import subprocess
import sys
import zipfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import gingham as gg
from gingham import verify
from gingham.certificates.bounds import ln_shtarkov
from gingham.certificates.divergence import ball_maximum
from gingham.certificates.prices import partition_exact
from gingham.certificates.record import digest
from gingham.models.layers import Sampler

SOURCE = Path(verify.__file__)
STARS = range(1, 6)


def planted(n=360, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (n, 2))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    return X, np.where(rng.random(n) < 0.2, rng.integers(1, 6, n), y), rng.integers(1, 4, n)


def write_csv(path, columns):
    rows = zip(*[np.asarray(column).tolist() for column in columns.values()])
    path.write_text("\n".join([",".join(columns), *[",".join(map(str, row)) for row in rows]]) + "\n")


def make(kind):
    """A certificate, the model to save (or None) and the table."""
    X, y, w = planted()
    table = {"user": X[:, 0], "film": X[:, 1], "stars": y}
    grid = gg.CoClusteringRegressor(2, alphabet=STARS, offsets=False, random_state=0)
    if kind == "in sample":
        return gg.certify(grid.fit(X, y), X, y), grid, table
    if kind == "compared":
        return gg.certify(grid.fit(X, y), X, y).compare().best, grid, table
    if kind == "unseen items":
        return gg.certify(grid.fit(X[:20], y[:20]), X, y), grid, table
    if kind == "weighted mean":
        certificate = gg.certify(grid.fit(X, y, w), X, y, sample_weight=w, predictor="mean")
        return certificate, grid, {**table, "weight": w}
    if kind == "quadratic":
        grid.set_params(loss="quadratic", alphabet=None, bounds=(1, 5))
        return gg.certify(grid.fit(X, y), X, y), grid, table
    if kind == "wide":
        grid.set_params(loss="quadratic", alphabet=None, bounds=(0, 50))
        return gg.certify(grid.fit(X, y), X, y), grid, table
    if kind == "hard":
        grid = gg.CoClusteringClassifier(2, alphabet=STARS, loss="zero-one", solver="sweep", random_state=0).fit(X, y)
        return gg.certify(grid, X, y), grid, table
    if kind == "table":
        costs = np.abs(np.subtract.outer(STARS, STARS)) ** 0.5
        grid = gg.CoClusteringRegressor(2, loss=costs, alphabet=STARS, offsets=False, random_state=0).fit(X, y)
        return gg.certify(grid, X, y), grid, table
    if kind in ("holdout", "betting", "gibbs"):
        half = {name: column[200:] for name, column in table.items()}
        rule = "gibbs" if kind == "gibbs" else "median"
        method = "betting" if kind == "betting" else "log-wealth"
        grid.fit(X[:200], y[:200])
        options = {"bound": "holdout", "predictor": rule, "method": method, "candidates": 3}
        return gg.certify(grid, X[200:], y[200:], **options), grid, half
    if kind in ("split holdout", "split prior"):
        certificate = gg.certify(grid, X, y, bound="split", method=kind.removeprefix("split "), random_state=2)
        return certificate, certificate.model, table
    if kind == "split weighted":
        certificate = gg.certify(grid, X, y, bound="split", sample_weight=w, predictor="median", random_state=2)
        return certificate, certificate.model, {**table, "weight": w}
    if kind == "predictions, wide":
        certificate = gg.certify_predictions(y, y, loss="absolute", label_bounds=(0, 50))
        return certificate, None, {"guess": y, "stars": y}
    if kind == "predictions":
        guess = np.clip(y + np.random.default_rng(1).normal(0, 0.5, len(y)), 1, 5)
        certificate = gg.certify_predictions(y, guess, loss="absolute", label_bounds=(1, 5), method="betting")
        return certificate, None, {"guess": guess, "stars": y}
    if kind == "names":
        names = np.array(["no", "yes"])[(y > 2).astype(int)]
        model = gg.CoClusteringClassifier(2, alphabet=["no", "yes"], loss="zero-one", random_state=0)
        certificate = gg.certify_progressive(model, X, names, blocks=3, random_state=5)
        return certificate, certificate.model, {**table, "stars": names}
    if kind == "density":
        certificate = gg.certify(grid.fit(X, y), X, population=(12, 15), bound="density")
        return certificate, grid, {"user": X[:, 0], "film": X[:, 1]}
    if kind == "counts":
        counts = np.zeros((12, 12))
        np.add.at(counts, (X[:, 0], X[:, 1]), 1)
        model = gg.CoOccurrenceClustering((2, 2), random_state=0).fit(counts)
        certificate = gg.certify(model, X, population=(12, 12), bound="density")
        return certificate, model, {"user": X[:, 0], "film": X[:, 1]}
    options = {"blocks": 3, "random_state": 7}
    if kind == "progressive weighted":
        certificate = gg.certify_progressive(grid, X, y, sample_weight=w, rule="median", candidates=4, **options)
        return certificate, certificate.model, {**table, "weight": w}
    if kind == "progressive quadratic":
        grid.set_params(loss="quadratic", alphabet=None, bounds=(1, 5))
    if kind == "progressive references":
        options["references"] = 3
    if kind == "progressive arrival":
        options["order"] = "arrival"
    if kind == "progressive layers":
        grid = gg.LayeredCoClusteringRegressor(
            1, 2, alphabet=STARS, sampler=Sampler(n_sweeps=25, n_chains=1), random_state=0
        )
    certificate = gg.certify_progressive(grid, X, y, **options)
    return certificate, certificate.model, table


KINDS = [
    "in sample", "compared", "unseen items", "weighted mean", "quadratic", "hard", "table", "holdout", "betting",
    "gibbs", "split holdout", "split weighted", "split prior", "predictions", "names", "density", "counts",
    "progressive", "progressive weighted",
    "progressive quadratic", "progressive arrival", "progressive layers", "progressive references",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of each kind, made once."""
    folder, found = tmp_path_factory.mktemp("certificates"), {}

    def files(kind):
        if kind not in found:
            certificate, model, table = make(kind)
            place = folder / kind.replace(" ", "_")
            place.mkdir()
            certificate.save(place / "c.json")
            if model is not None:
                model.save(place / "model.gingham")
            write_csv(place / "data.csv", table)
            found[kind] = place
        return found[kind]

    return files


def run(place, capsys):
    model = place / "model.gingham"
    code = verify.main(str(place / "c.json"), str(model) if model.exists() else "-", str(place / "data.csv"))
    return code, capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_true_certificates_are_verified(kind, made, capsys):
    code, words = run(made(kind), capsys)
    assert code == 0, words
    assert "verified. It rests on what is given:" in words
    assert "differs" not in words
    assert ("taken as it is stated" in words) == (kind == "progressive layers")
    first = "prediction 'guess'" if kind.startswith("predictions") else "id 'user', id 'film'"
    assert f"verified: {first}" in words
    by_its_word = kind in ("betting", "predictions", "names") or kind.startswith("progressive")
    assert ("by the word of the run" in words) == by_its_word


# what a forger might change: the JSON, the model file, the table


def put(*path, to):
    def change(document, folder):
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = to(node[path[-1]]) if callable(to) else to

    return change


def both(*changes):
    def change(document, folder):
        for each in changes:
            each(document, folder)

    return change


def unsaid(code):
    """A premise is left out."""
    return put("certificate", "assumptions", to=lambda found: [one for one in found if one["code"] != code])


def now_checked(code):
    """What somebody has to believe is said to have been made true."""
    status = {"status": "checked"}
    return put(
        "certificate", "assumptions", to=lambda found: [one | status if one["code"] == code else one for one in found]
    )


def moved(values):
    """One item's memberships exchanged."""
    values = deepcopy(values)
    values[0][0] = values[0][0][::-1]
    return values


def nudged(values):
    values = deepcopy(values)
    values[0][3] = [values[0][3][0] + 0.01, values[0][3][1] - 0.01][:: 1 if values[0][3][1] > 0.01 else -1]
    return values


def in_table(at, column, to):
    def change(document, folder):
        path = folder / "data.csv"
        lines = path.read_text().splitlines()
        cells = lines[at].split(",")
        cells[column] = to(cells[column])
        lines[at] = ",".join(cells)
        path.write_text("\n".join(lines) + "\n")

    return change


def lines_of_table(edit):
    def change(document, folder):
        path = folder / "data.csv"
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([head, *edit(lines)]) + "\n")

    return change


def with_digest(change):
    """A forger who also mends the digest of the rows."""

    def mended(document, folder):
        change(document, folder)
        _, *lines = [line.split(",") for line in (folder / "data.csv").read_text().splitlines()]
        rows = [[*line[:2], *[repr(float(v)) for v in line[2:]]] for line in lines]
        text = "".join("".join(f"{len(cell)}:{cell}" for cell in row) + ";" for row in rows)
        document["data"].update(digest=hashlib.sha256(text.encode()).hexdigest(), n_rows=len(rows))

    return mended


def in_model(choose, edit):
    """Change the first array that ``choose`` likes, and mend its checksum."""

    def change(document, folder):
        path = folder / "model.gingham"
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(files["manifest.json"])
        for name in manifest["checksums"]:
            array = np.load(io.BytesIO(files[name])).copy()
            if choose(array):
                stream = io.BytesIO()
                np.save(stream, edit(array))
                files[name] = stream.getvalue()
                manifest["checksums"][name] = hashlib.sha256(files[name]).hexdigest()
                break
        else:
            raise AssertionError("no such array")
        files["manifest.json"] = json.dumps(manifest).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)

    return change


def is_membership(array):
    return array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind == "f" and len(array) > 2


def is_answers(array):
    return array.shape == (2, 2)


def reversed_row(array):
    array[0] = array[0][::-1] if array[0, 0] != array[0, 1] else [1.0, 0.0]
    return array


def other_answer(array):
    array[0, 0] = 2 if array[0, 0] != 2 else 3
    return array


C, F = "certificate", "facts"
TAMPERED = {
    "value": ("in sample", put(C, "value", to=lambda v: v - 0.001)),
    "value, only a little": ("in sample", put(C, "value", to=lambda v: v - 1e-5)),
    "loss on the sample": ("in sample", put(C, "empirical", to=lambda v: v + 0.001)),
    "δ": ("in sample", put(C, "delta", to=0.01)),
    "δ of 1.5": ("in sample", put(C, "delta", to=1.5)),
    "δ that is not a number": ("in sample", put(C, "delta", to=float("nan"))),
    "number of observations": ("in sample", put(C, "n_observations", to=720)),
    "price of the partition": ("in sample", put(C, "terms", "user: who belongs where", to=1.0)),
    "largest loss": ("in sample", put(C, "worst", to=3.0)),
    "name of the bound": ("in sample", put(C, "bound", to="kl")),
    "predictor": ("in sample", put(C, "predictor", to="median")),
    "mean of a loss that is not convex": ("hard", put(C, "predictor", to="mean")),
    "lower bound": ("in sample", put(C, "lower", to=0.3)),
    "holdout at any time": ("holdout", put(C, "anytime", to=True)),
    "an assumption of a third status": ("in sample", put(C, "assumptions", 0, "status", to="violated")),
    "no word on how rows were drawn": ("in sample", put(C, "assumptions", 0, "status", to="checked")),
    "no word on how held-out rows were drawn": ("holdout", unsaid("independent")),
    "no word on weights": ("weighted mean", unsaid("weights")),
    "no word on the choice of settings": ("progressive", unsaid("settings")),
    "no word on who fitted the members": ("progressive", unsaid("members fitted here")),
    "settings that were checked": ("progressive", now_checked("settings")),
    "weights that were checked": ("weighted mean", now_checked("weights")),
    "alphabet, one label more": ("in sample", put(F, "loss", "alphabet", to=[1, 2, 3, 4, 5, 6])),
    "alphabet, one label less": ("in sample", put(F, "loss", "alphabet", to=[1, 2, 3, 4])),
    "alphabet, another label": ("in sample", put(F, "loss", "alphabet", to=[0, 2, 3, 4, 5])),
    "table of losses": ("in sample", put(F, "loss", "table", 0, 4, to=1.0)),
    "range of the loss": ("in sample", put(F, "loss", "range", to=2.0)),
    "bounds": ("quadratic", put(F, "loss", "bounds", to=[1, 3])),
    "name of the loss": ("in sample", put(C, "loss", to="zero-one")),
    "a membership": ("in sample", put(F, "posterior", "memberships", to=nudged)),
    "a membership in the model": ("in sample", in_model(is_membership, reversed_row)),
    "an answer": ("in sample", put(F, "posterior", "answers", 0, 0, to=lambda v: 2)),
    "an answer in the model": ("in sample", in_model(is_answers, other_answer)),
    "the order of items": ("in sample", put(F, "posterior", "items", 0, to=lambda v: v[::-1])),
    "the grid of ν": ("in sample", put(F, "nu_grid", to=[1.5])),
    "a frozen mode that was learned": ("in sample", put(F, "posterior", "frozen", to=[True, False])),
    "price of answers, fewer possible": ("quadratic", put(F, "n_answers", to=lambda v: 5 if v == 3 else 3)),
    "answers off the paid grid": ("quadratic", put(F, "posterior", "answers", 0, 0, to=lambda v: v + 0.01)),
    "a label": ("in sample", in_table(5, 2, lambda v: "3" if v != "3" else "2")),
    "a label, digest mended": ("in sample", with_digest(in_table(5, 2, lambda v: "3" if v != "3" else "2"))),
    "an id, digest mended": ("in sample", with_digest(in_table(5, 0, lambda v: str((int(v) + 1) % 12)))),
    "an unknown id": ("in sample", with_digest(in_table(5, 0, lambda v: "nobody"))),
    "a label outside": ("in sample", with_digest(in_table(5, 2, lambda v: "9"))),
    "a weight": ("weighted mean", in_table(5, 3, lambda v: str(int(v) + 1))),
    "a weight, digest mended": ("weighted mean", with_digest(in_table(5, 3, lambda v: str(int(v) + 1)))),
    "half a weight": ("weighted mean", with_digest(in_table(5, 3, lambda v: "0.5"))),
    "a row left out": ("in sample", lines_of_table(lambda rows: rows[1:])),
    "a row twice, digest mended": ("in sample", with_digest(lines_of_table(lambda rows: [rows[0], *rows]))),
    "rows in another order": ("progressive", lines_of_table(lambda rows: rows[::-1])),
    "rows in another order, digest mended": (
        "progressive",
        with_digest(lines_of_table(lambda rows: rows[::-1])),
    ),
    "in sample passed off as holdout": (
        "in sample",
        both(put("kind", to="holdout"), put(C, "bound", to="holdout"), put(C, "value", to=lambda v: v)),
    ),
    "candidates": ("holdout", put(F, "candidates", to=1)),
    "how many were compared": ("compared", put(F, "candidates", to=1)),
    "method": ("betting", put(F, "method", to="log-wealth")),
    "seed of the bets": ("betting", put(F, "seed", to=3)),
    "a finished prediction": ("predictions", in_table(5, 0, lambda v: "3.0")),
    "rows of the split": ("split prior", put(F, "rows", to=lambda v: v[1:])),
    "rows of the split, one twice": ("split prior", put(F, "rows", to=lambda v: [*v[:-1], v[0]])),
    "draws of the split": ("split weighted", put(F, "counts", 0, to=lambda v: v + 3)),
    "half a draw": ("split weighted", put(F, "counts", 0, to=lambda v: v - 0.5)),
    "all draws of a row": ("split weighted", put(F, to=lambda v: {k: x for k, x in v.items() if k != "counts"})),
    "seed of the bets, both": ("betting", both(put(F, "seed", to=3), put(C, "parameters", "seed", to=3.0))),
    "the prior": ("split prior", put(F, "prior", "memberships", to=moved)),
    "the prior in the model": ("split prior", in_model(is_membership, reversed_row)),
    "the posterior near the prior": ("split prior", put(F, "posterior", "memberships", to=moved)),
    "seed of the shuffle": ("progressive", put(F, "seed", to=8)),
    "seed of the shuffle, both": (
        "progressive",
        both(put(F, "seed", to=8), put(C, "parameters", "seed", to=8.0)),
    ),
    "order": ("progressive", put(F, "order", to="arrival")),
    "ν": ("progressive", put(C, "parameters", "nu", to=2.0)),
    "warm-up": ("progressive", put(F, "warm_up", to=240)),
    "edges of the blocks": ("progressive", put(F, "edges", 1, to=lambda v: v + 5)),
    "blocks": ("progressive", put(C, "parameters", "blocks", to=6)),
    "references": ("progressive references", put(F, "references", to=[])),
    "one reference less": ("progressive references", put(F, "references", to=lambda v: v[:-1])),
    "a reference that learned more": ("progressive references", put(F, "references", 1, to=lambda v: v + 1)),
    "number of references": ("progressive references", put(C, "parameters", "references", to=2)),
    "references at any time": ("progressive references", put(C, "anytime", to=True)),
    "references in the order of arrival": ("progressive references", put(F, "order", to="arrival")),
    "ν of references": ("progressive references", put(C, "parameters", "nu", to=1.5)),
    "a prediction of a reference": ("progressive references", put(F, "predictions", 250, to=lambda v: 6 - v)),
    "a prediction": ("progressive", put(F, "predictions", -1, to=lambda v: 6 - v)),
    "a prediction of the pilot": ("progressive", put(F, "predictions", 0, to=lambda v: 6 - v)),
    "all predictions made to fit": ("progressive", put(F, "predictions", to=lambda v: [3.0] * len(v))),
    "candidates of the stream": ("progressive weighted", put(F, "candidates", to=1)),
    "price of the confidence": ("progressive", put(C, "terms", "confidence ln 1/δ", to=1.0)),
    "a member's membership in the model": ("progressive", in_model(is_membership, reversed_row)),
    "a share in the model": ("progressive", in_model(lambda a: a.shape == (3,), lambda a: a[::-1] * [1, 2, 0])),
    "drawn member passed off as their mean": ("names", put(C, "predictor", to="mean of the members")),
    "code length": ("density", put(C, "value", to=lambda v: v - 0.01)),
    "observed code length": ("density", put(C, "empirical", to=lambda v: v - 0.01)),
    "δ of a density": ("density", put(C, "delta", to=0.2)),
    "a membership of a density": ("density", put(F, "posterior", "memberships", to=moved)),
    "a membership of counts in the model": ("counts", in_model(is_membership, reversed_row)),
    "items that are not there any more": ("density", put(F, "population", to=[12, 12])),
    "another format": ("in sample", put("format", to="something else")),
}


def test_there_are_at_least_thirty_kinds_of_tampering():
    assert len(TAMPERED) >= 30


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found(name, made, tmp_path, capsys):
    kind, change = TAMPERED[name]
    original = made(kind)
    for file in original.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    document = json.loads((tmp_path / "c.json").read_text())
    change(document, tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(document))
    unchanged = all(
        (tmp_path / f.name).read_bytes() == f.read_bytes() for f in original.iterdir() if f.suffix != ".json"
    )
    assert not unchanged or document != json.loads((original / "c.json").read_text())
    code, words = run(tmp_path, capsys)
    assert code == (2 if name == "δ that is not a number" else 1), words
    assert "verified. It rests" not in words
    assert words.startswith(("differs: ", "cannot be read: "))


# A forger who changes what a certificate is computed from, and then puts in all numbers that follow from it.
def labels_as_predictions(document, folder):
    """Name the column of labels as that of predictions, too."""
    stars = [line.split(",")[1] for line in (folder / "data.csv").read_text().splitlines()[1:]]
    numbers = np.array(stars, dtype=float)
    document["data"] |= {"columns": ["stars"], "names": ["stars", "stars"], "kinds": ["number"], "label": "number"}
    document["data"]["digest"] = digest([numbers], ["number"], numbers, None)


FORGED = {
    "labels passed off as predictions": ("predictions", labels_as_predictions),
    "modes passed off as frozen cost nothing": ("in sample", put(F, "posterior", "frozen", to=[True, True])),
    "modes of a density passed off as frozen": ("density", put(F, "posterior", "frozen", to=[True, True])),
    "a hundredth of a candidate": ("in sample", put(F, to=lambda facts: {**facts, "candidates": 0.01})),
    "only rows that fit": ("in sample", put(F, to=lambda facts: {**facts, "rows": list(range(100))})),
    "only draws that fit": ("weighted mean", put(F, to=lambda facts: {**facts, "counts": [1] * 360})),
    "other rows of the split": ("split prior", put(F, "rows", to=lambda rows: rows[:-20])),
    "other draws of the split": ("split weighted", put(F, "counts", to=lambda counts: [1] * len(counts))),
    "bounds as narrow as the labels": (
        "wide",
        both(put(F, "loss", "bounds", to=[1, 5]), put(F, "loss", "range", to=16.0)),
    ),
    "bounds of finished predictions": (
        "predictions, wide",
        both(put(F, "loss", "bounds", to=[1, 5]), put(F, "loss", "range", to=4.0)),
    ),
    "sorted rows passed off as they arrived": (
        "progressive layers",
        both(put(F, "order", to="arrival"), put(C, "parameters", "seed", to=None)),
    ),
}
PLACES = {
    "value": "value",
    "loss on the sample": "empirical",
    "number of observations": "n_observations",
    "largest loss": "worst",
}


def computed_again(document, words):
    """Put in what the checker computed; whether anything was put in."""
    found = re.findall(r"(?:^|differs: )([^:\n]*): the certificate says .*, computed again it is (.*)\.$", words, re.M)
    for name, number in found:
        what = document["certificate"]
        if name in PLACES:
            what[PLACES[name]] = float(number)
        elif name == "ν":
            what["parameters"]["nu"] = float(number)
        elif name == "price (nats)":
            what["terms"] = {"all": float(number)}
    return bool(found)


@pytest.mark.parametrize("name", FORGED)
def test_a_forger_who_computes_everything_again_is_found(name, made, tmp_path, capsys):
    kind, change = FORGED[name]
    for file in made(kind).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    document = json.loads((tmp_path / "c.json").read_text())
    change(document, tmp_path)
    for _ in range(4):
        (tmp_path / "c.json").write_text(json.dumps(document))
        code, words = run(tmp_path, capsys)
        if not computed_again(document, words):
            break
    assert code == 1, words
    assert "computed again" not in words  # all numbers fit, and still


def test_a_file_that_is_missing_or_no_certificate(tmp_path, capsys):
    assert verify.main(str(tmp_path / "none.json"), "-", "-") == 2
    (tmp_path / "c.json").write_text("[]")
    assert verify.main(str(tmp_path / "c.json"), "-", "-") == 2
    assert capsys.readouterr().out.count("cannot be read: ") == 2


def rewritten(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


UNREADABLE = {
    "a key that stands twice": lambda t: rewritten(t, '"value": ', '"value": 0.5, "value": '),
    "a second statement": lambda t: rewritten(t, '"facts": {"loss"', '"certificate": {},\n"facts": {"loss"'),
    "an unknown key of the file": lambda t: rewritten(t, '"kind": ', '"note": "valid", "kind": '),
    "an unknown key of the statement": lambda t: rewritten(t, '"value": ', '"unit": "stars", "value": '),
    "an unknown key of the facts": lambda t: rewritten(t, '"facts": {', '"facts": {"seen": 1, '),
    "a sentence in an assumption": lambda t: rewritten(t, '"status": ', '"text": "all is well", "status": '),
    "infinity": lambda t: rewritten(t, '"anytime": ', '"chosen_from": Infinity, "anytime": '),
    "an exponent that no float holds": lambda t: rewritten(t, '"delta": 0.05', '"delta": 5e-9999999, "x": 1e999'),
    "an integer of a thousand digits": lambda t: rewritten(t, '"chosen_from": 1', '"chosen_from": 1' + "0" * 1000),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_that_could_be_read_in_two_ways_are_refused(name, made, tmp_path, capsys):
    original = made("in sample")
    for file in original.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "c.json").write_text(UNREADABLE[name]((tmp_path / "c.json").read_text()))
    code, words = run(tmp_path, capsys)
    assert code == 2, words
    assert words.startswith("cannot be read: ")


def test_an_assumption_nobody_knows_is_not_what_a_bound_needs(made, tmp_path, capsys):
    """A sentence that contains the right words is no code."""
    original = made("holdout")
    for file in original.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    document = json.loads((tmp_path / "c.json").read_text())
    for assumption in document["certificate"]["assumptions"]:
        if assumption["code"] == "not fitted on these":
            assumption["code"] = "made without these observations, drawn independently, before the first test"
    (tmp_path / "c.json").write_text(json.dumps(document))
    assert run(tmp_path, capsys)[0] == 1


def test_tolerances_are_shares_of_the_range_of_the_loss(tmp_path, capsys):
    """A loss that lies between 0 and 1e-6 leaves no room for a value that is 5 % off."""
    y = np.random.default_rng(0).integers(0, 2, 200) * 1e-6
    certificate = gg.certify_predictions(y, np.zeros(200), loss="absolute", label_bounds=(0, 1e-6))
    certificate.save(tmp_path / "c.json")
    write_csv(tmp_path / "data.csv", {"guess": np.zeros(200), "y": y})
    assert run(tmp_path, capsys)[0] == 0
    document = json.loads((tmp_path / "c.json").read_text())
    document["certificate"]["value"] *= 0.95
    (tmp_path / "c.json").write_text(json.dumps(document))
    assert run(tmp_path, capsys)[0] == 1


def test_no_two_tables_have_one_digest():
    """Separators inside an id do not make it two."""
    assert verify.written(("a\x1fb", "c")) != verify.written(("a", "b\x1fc"))
    assert verify.written(("1:a", "")) != verify.written(("1", "a"))


@pytest.mark.parametrize("kind", ["in sample", "split prior", "predictions", "density", "progressive"])
def test_a_certificate_that_travelled_between_processes_can_be_saved(kind, tmp_path):
    certificate = pickle.loads(pickle.dumps(make(kind)[0]))
    certificate.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["certificate"]["value"] == certificate.value


def test_certificates_without_a_record_are_not_saved(tmp_path):
    X, y, _ = planted()
    committee = gg.Committee(gg.CoClusteringRegressor(2, alphabet=STARS), n_members=2, random_state=0).fit(X, y)
    with pytest.raises(gg.GinghamError, match="does not store its inputs"):
        gg.certify(committee, X, y).save(tmp_path / "c.json")


def forged_split(document, place):
    """Another seed of the split, with the rows that it would set aside: half of them the model was fitted on."""
    rng = np.random.default_rng(99)
    document["facts"]["rows"] = sorted(rng.permutation(360)[270:].tolist())
    document["certificate"]["parameters"]["seed"] = 99.0


def forged_shuffle(document, place):
    """Another seed of the order: the members predict, of their own, what they have learned from."""
    facts = document["facts"]
    facts["seed"], document["certificate"]["parameters"]["seed"] = 99, 99.0
    draws = np.random.default_rng(99).permutation(360)
    members = gg.load(place / "model.gingham")
    X = planted()[0]
    spans = [(facts["pilot"], facts["edges"][0]), *zip(facts["edges"], facts["edges"][1:])]
    fits = [members.pilot_, *members.members_]
    told = [fit.predict(X[draws[at:end]]) for fit, (at, end) in zip(fits, spans)]
    facts["predictions"] = np.concatenate(told).tolist()


@pytest.mark.parametrize(("kind", "forged"), [("split holdout", forged_split), ("progressive", forged_shuffle)])
def test_another_seed_is_found_by_the_rows_that_the_model_was_fitted_on(kind, forged, made):
    place = made(kind)
    document = json.loads((place / "c.json").read_text())
    forged(document, place)
    found = verify.Checker(document, place / "model.gingham", place / "data.csv").run()
    assert any(text.startswith("A model was fitted on other rows than is said") for text in found.differences)
    others = [text for text in found.differences if "computed again" not in text and "fitted on" not in text]
    assert others == []  # nothing else is left that a forger could not compute again


def test_members_that_were_changed_are_found_though_nobody_knows_what_they_predict(made, tmp_path):
    place = made("progressive layers")
    with zipfile.ZipFile(place / "model.gingham") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.endswith(".npy") and np.load(io.BytesIO(parts[name])).dtype.kind == "f")
    stream = io.BytesIO()
    np.save(stream, np.load(io.BytesIO(parts[name])) + 0.5)
    parts[name] = stream.getvalue()
    with zipfile.ZipFile(tmp_path / "model.gingham", "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    document = json.loads((place / "c.json").read_text())
    found = verify.Checker(document, tmp_path / "model.gingham", place / "data.csv").run()
    assert any(text.startswith("members' digest") for text in found.differences)


def test_exit_codes_go_through_pipes(made, tmp_path):
    """1 where something differs and 2 where nothing can be read, though the reader of the output has gone."""
    place, broken = made("in sample"), tmp_path / "broken.json"
    broken.write_text("{")
    document = json.loads((place / "c.json").read_text())
    document["certificate"]["value"] *= 0.5
    (tmp_path / "c.json").write_text(json.dumps(document))
    for certificate, code in ((place / "c.json", 0), (tmp_path / "c.json", 1), (broken, 2)):
        command = f"{sys.executable} {SOURCE} {certificate} {place}/model.gingham {place}/data.csv | true; "
        shell = ["bash", "-c", command + "exit ${PIPESTATUS[0]}"]
        ended = subprocess.run(shell, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (code, "")


def test_the_checker_runs_as_a_program(made):
    place = made("progressive")
    command = [sys.executable, str(SOURCE), *[str(place / name) for name in ("c.json", "model.gingham", "data.csv")]]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith("verified")


def test_references_that_were_picked_are_found_though_all_their_numbers_fit(made):
    """Whoever may choose where references begin may choose the luckiest ones."""
    place = made("progressive references")
    document = json.loads((place / "c.json").read_text())
    facts = document["facts"]
    facts["references"][1] += 5
    at = facts["edges"][-1] - facts["references"][0]  # the second reference's predictions begin there
    del facts["predictions"][at : at + 5]
    found = verify.Checker(document, place / "model.gingham", place / "data.csv").run()
    assert "Blocks are not as stated." in found.differences


def test_the_checker_is_short_and_imports_nothing_of_gingham():
    text = SOURCE.read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").split(".")[0])
    assert imported <= {"numpy"} | sys.stdlib_module_names


def test_both_derivations_of_the_theorems_agree():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(4), 60)
    assert verify.partition_price(q) == pytest.approx(sum(partition_exact(q).values()), rel=1e-9)
    for size, n in ((1, 50), (2, 50), (7, 400)):
        assert verify.ln_shtarkov(size, n) == pytest.approx(ln_shtarkov(size, n), rel=1e-9, abs=1e-12)
    weights, values = rng.dirichlet(np.ones(9)), rng.random(9)
    assert verify.largest_mean(weights, values, 0.05) == pytest.approx(ball_maximum(weights, values, 0.05), rel=1e-7)


def test_the_checker_is_written_to_be_read():
    assert max(map(len, Path(verify.__file__).read_text("utf-8").splitlines())) <= 100
