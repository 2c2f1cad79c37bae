"""What the first screen says in plain words: the data, how well it is predicted, what is guaranteed, what next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from gingham.summary.measure import UNITS, in_unit
from gingham.summary.values import MODEL, Errors, Observed, Summary, counted, listed, plural

FEW_LABELS = 4  # that are listed with their shares
NO_BREAK = "\N{NO-BREAK SPACE}"  # a line must not begin with "%"


def short(value: float, digits: int = 3) -> str:
    """A number with sensible digits: 0.937, 12.4, 679, 12,345."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def percent(share: float) -> str:
    """A share with sensible digits: "6 %", "0.04 %", which stay on one line."""
    if 0 < share < 1e-4:
        return f"less than 0.01{NO_BREAK}%"
    return f"{100 * share:.0f}{NO_BREAK}%" if share >= 0.0995 or share == 0 else f"{100 * share:.2g}{NO_BREAK}%"


def noun_of(label: str, measure: str) -> str:
    """What one observation is called: "rating", "edge"; "entry" where its column has no plain name."""
    if label == "taken":
        return "pair"
    if not label.isalpha() or label == "label":
        return "count" if measure == "lift" else "entry"
    if label.endswith("ies"):
        return f"{label[:-3]}y"
    return label[:-1] if label.endswith("s") and not label.endswith(("ss", "us", "is")) else label


# what the data is


def data_words(summary: Summary, observed: Observed | None, label: str) -> str:
    """The size of the data and what was observed, in a sentence or two."""
    table = summary.tables[0]
    noun, n = noun_of(label, table.measure), summary.n_observed
    sides = [summary.sides[at] for at in dict.fromkeys(side for one in summary.tables for side in one.sides)]
    items = " × ".join(counted(side.n_items, side.name) for side in sides)
    if observed is None:
        return f"{items}; {counted(n, noun)}."
    relation = observed.relations[0]
    shape = [observed.shape[side] for side in relation.sides]
    places = float(np.prod([float(k) for k in shape]))
    if relation.both_ways:
        places = shape[0] * (shape[0] - 1) / 2
    full = percent(min(relation.n_entries / max(places, 1.0), 1.0))
    if table.measure == "lift":
        if label == "edge":
            return f"{items}; {counted(n, 'edge')}, between {full} of all pairs."
        return f"{items}; {counted(n, noun)}, in {full} of all pairs."
    if table.measure == "labels":
        codes = np.bincount(np.asarray(relation.values), relation.weight, len(relation.labels))
        order = np.argsort(-codes, kind="stable")[:FEW_LABELS]
        shares = [f"{relation.labels[i]} {percent(float(codes[i] / codes.sum()))}" for i in order.tolist()]
        more = ", …" if len(codes) > FEW_LABELS else ""
        return f"{items}; {counted(n, noun)}, for {full} of all pairs: {', '.join(shares)}{more}."
    y = np.asarray(relation.values, dtype=np.float64)
    if relation.expected is None:
        return f"{items}; {counted(n, noun)}, in standard deviations."
    mean = float(np.average(y, weights=relation.weight))
    return (
        f"{items}; {counted(n, noun)} from {short(float(y.min()))} to {short(float(y.max()))}, {short(mean)} on "
        f"average, for {full} of all pairs."
    )


# how well it predicts

PLAIN = {"the commonest label": "always the commonest"}


def prediction_words(summary: Summary, label: str) -> dict[str, object] | None:
    """The error beside baselines as bars, and what it says in a sentence; None where nothing could be held out."""
    errors, measure = summary.errors, summary.tables[0].measure
    if errors is None:
        return None
    noun = noun_of(label, measure)
    if measure == "lift":
        return _likelihoods(summary, errors, noun)
    named = errors.loss == "zero-one"
    top = max(score.value for score in errors.scores)
    bars = [
        {
            "name": PLAIN.get(score.name, score.name),
            "text": percent(score.value) if named else short(score.value),
            "length": score.value / max(top, 1e-300),
            "model": score.name == MODEL,
        }
        for score in errors.scores
    ]
    return {
        "unit": f"{errors.unit}; shorter is better",
        "bars": bars,
        "useful": errors.useful,
        "sentence": _error_sentence(summary, errors, noun, named),
    }


def _tested(summary: Summary, errors: Errors, noun: str) -> str:
    """ "1,234 ratings that were held out", and whether that is all of them, in turn."""
    said = f"{counted(errors.n_held, noun)} that {'was' if errors.n_held == 1 else 'were'} held out"
    return f"{said} in turn" if errors.n_held >= summary.n_observed > 1 else said


def _error_sentence(summary: Summary, errors: Errors, noun: str, named: bool) -> str:
    best, model = errors.best_baseline, errors.model
    tested = _tested(summary, errors, noun)
    if model is None or best is None:
        return f"Simple rules on {tested}; this model was not measured there."
    name = PLAIN.get(best.name, best.name)
    missed = (
        f"it gets {percent(model)} wrong, and “{name}” {percent(best.value)}"
        if named
        else f"its {errors.unit} is {short(model)}, and that of the best simple rule, {name}, {short(best.value)}"
    )
    gain = 1 - model / best.value if best.value > 0 else 0.0
    if errors.useful:
        said = f"{percent(gain)} less." if gain >= 5e-4 else "hardly less."
        return f"On {tested}, {missed}: {said}"
    return f"On {tested}, {missed}. Predict with that rule rather than with this model; read the groups with care."


def _likelihoods(summary: Summary, errors: Errors, noun: str) -> dict[str, object]:
    """Of counts and edges: how many times as probable they are as if all pairs were equally so."""
    table = summary.tables[0]
    pairs = [summary.sides[at] for at in table.sides] if len(summary.sides) <= 2 else list(summary.sides)
    uniform = sum(math.log(side.n_items) for side in pairs)
    graph = len(summary.sides) == 1
    names = {"independence": "degrees alone" if graph else "chance alone"}
    even = "equal density everywhere" if graph else "all pairs alike"
    scores = [(names.get(s.name, PLAIN.get(s.name, s.name)), s.value, s.name == MODEL) for s in errors.scores]
    rows = [*scores, (even, uniform, False)]
    times = [(name, math.exp(min(uniform - nats, 50.0)), model) for name, nats, model in rows]
    top = max(value for _, value, _ in times)
    bars = [{"name": name, "text": f"×{short(value, 2)}", "length": value / top, "model": model}
            for name, value, model in times]  # fmt: skip
    model, best = errors.model, errors.best_baseline
    tested = _tested(summary, errors, noun)
    sides = listed([plural(side.name) for side in dict.fromkeys(pairs)])
    if model is None or best is None:
        sentence = f"Simple rules on {tested}; this model was not measured there."
    elif errors.useful:
        factor = short(math.exp(best.value - model), 2)
        chance = "their degrees alone say" if graph else f"if {sides} had nothing to do with one another"
        sentence = f"On {tested}, the groups make each {noun} {factor} times as probable as {chance}."
    else:
        alone = "the degrees of nodes do" if graph else f"how often {sides} occur does"
        sentence = f"On {tested}, the groups say no more than {alone}."
    return {
        "unit": f"how probable an unseen {noun} is; longer is better",
        "bars": bars,
        "useful": errors.useful,
        "sentence": sentence,
    }


# what is guaranteed


def guarantee_words(certificates: Sequence[Mapping[str, object]], refusal: str, noun: str) -> dict[str, object]:
    """One sentence on what is guaranteed, and whether that is better than what a trivial predictor is guaranteed."""
    if not certificates:
        reason = refusal or "No guarantee was asked for."
        if "--population" in refusal:
            reason = "It must be said how many there are in all, those included that do not occur here: see below."
        return {"sentence": "Nothing is guaranteed yet.", "verdict": reason, "better": None}
    # All of them hold together, so that the one that says most may be quoted with the confidence of all.
    sure = f"With {100 * (1 - sum(float(str(c['delta'])) for c in certificates)):.3g} % confidence"
    gain = next((c for c in certificates if c.get("bound") == "gain"), None)
    if gain is not None:
        value = float(str(gain["value"]))
        if value < 0:
            return {
                "sentence": f"{sure}, the groups predict new pairs better than one answer for all of them: their "
                f"squared error is smaller by at least {short(-value, 2)}.",
                "verdict": "That is better than the trivial guarantee.",
                "better": True,
            }
        return {
            "sentence": f"{sure}, the groups predict new pairs at most {short(value, 2)} (squared error) worse than "
            "one answer for all of them.",
            "verdict": "That does not prove that the groups are of use: the trivial guarantee is as good.",
            "better": False,
        }
    best = min(certificates, key=lambda c: float(str(c["value"])) * (-1 if c.get("at_least") else 1))
    value, loss = float(str(best["value"])), str(best["loss"])
    trivial = best.get("trivial")
    found = None if trivial is None else float(str(trivial))
    value, found = in_unit(value, loss), None if found is None else in_unit(found, loss)
    said = f"{sure}, {_promise(best, value, loss, noun)}.{_on_own_rows(best, loss)}"
    return {"sentence": said, **_verdict(best, value, found, loss)}


COVERED = {
    "progressive tests": "It speaks of the models that were fitted one after the other to test each on new rows",
    "training rows": "It speaks of the model itself",
    "rows set aside": "It speaks of the same model, fitted without the rows that were set aside",
    "rows set aside in turn": "It speaks of the same model, fitted without the part of the rows that tested it",
}


def _on_own_rows(certificate: Mapping[str, object], loss: str) -> str:
    """Whom the guarantee is about, and what was measured on the very rows that it comes from."""
    who, empirical = COVERED.get(str(certificate.get("name"))), certificate.get("empirical")
    if who is None or empirical is None:
        return ""
    measured = in_unit(float(str(empirical)), loss)
    shown = f"{percent(measured)} were wrong" if loss.startswith("zero-one") else f"it was {short(measured)}"
    return f" {who}; on the {float(str(certificate['n_tuples'])):,.0f} rows that it comes from, {shown}."


def _promise(certificate: Mapping[str, object], value: float, loss: str, noun: str) -> str:
    many = plural(noun)
    if certificate.get("bound") == "density":
        return (
            f"the next {noun} is on average no harder to guess than one among {short(math.exp(min(value, 700.0)))} "
            "equally likely pairs"
        )
    if certificate.get("at_least"):
        return f"the groups tell something about what was not asked: at least {short(value)} (0 is nothing)"
    if loss.startswith("zero-one"):
        return f"at most {percent(value)} of predictions of new {many} are wrong"
    if loss.startswith("absolute"):
        return f"predictions of new {many} like these are off by at most {short(value)} on average"
    worst = certificate.get("worst")
    most = "" if worst is None else f" (the worst possible is {short(in_unit(float(str(worst)), loss))})"
    return f"the {UNITS.get(loss, f'average {loss}')} on new {many} like these is at most {short(value)}{most}"


def _verdict(certificate: Mapping[str, object], value: float, trivial: float | None, loss: str) -> dict[str, object]:
    if certificate.get("at_least"):
        better = value > 0
        said = "That is better than" if better else "That is no better than"
        return {"verdict": f"{said} the trivial guarantee, which is nothing.", "better": better}
    if trivial is None:
        return {"verdict": "", "better": None}
    density = certificate.get("bound") == "density"
    shown = f"one among {short(math.exp(min(trivial, 700.0)))}" if density else (
        percent(trivial) if loss.startswith("zero-one") else short(trivial)
    )  # fmt: skip
    what = "rows and columns that have nothing to do with one another" if density else "one constant answer"
    if certificate.get("unit") == "objects":
        what = "views that have nothing to do with one another"
    if value < trivial:
        return {"verdict": f"That is better than the trivial guarantee: {shown}, for {what}.", "better": True}
    return {
        "verdict": (
            f"That is no better than the trivial guarantee: {shown}, for {what}. So it does not prove that the groups "
            "are of use."
        ),
        "better": False,
    }


# what to do next


def next_steps(
    summary: Summary, files: tuple[str, str] | None, certified: bool = True, predicts: bool = True
) -> list[list[str]]:
    """[what for, what to paste]; ``files`` are the model and the table, where a command line is used.

    ``predicts`` says whether the model predicts pairs of items.
    """
    first, second = (summary.sides[at] for at in summary.tables[0].sides)
    at = [int(np.argmax(side.mass)) for side in (first, second)]
    one, other = (side.items[i : i + 1].tolist()[0] for side, i in zip((first, second), at))
    ranking = summary.tables[0].label == "taken"  # of who took what: for somebody, not for pairs
    titles = [(side.items if side.titles is None else side.titles)[i] for side, i in zip((first, second), at)]
    fits = f"what fits {first.name} {_cut(titles[0])} best"
    alike = f"what is like {second.name} {_cut(titles[1])}"
    if files is None:
        mine = f"[{one!r}]" if ranking else f"{one!r}, side={first.name!r}"
        its = f"[{other!r}]" if ranking else f"{other!r}, side={second.name!r}"
        why = f"model.explain({one!r}, [{other!r}])" if ranking else f"model.explain(({one!r}, {other!r}))"
        steps = [["the groups as a table", "model.describe()"]]
        steps += [[fits, f"model.recommend({mine})"]] if predicts else []
        steps += [[alike, f"model.similar({its})"]]
        steps += [["why a pair is predicted as it is", why]] if predicts else []
        return steps if certified or ranking else [["a guarantee", "gg.certify(model, X, y)"], *steps]
    model, file = (shlex.quote(name) for name in files)
    this, that = shlex.quote(str(one)), shlex.quote(str(other))
    steps = [["the groups as a table", f"gingham describe {model} --out groups.csv"]]
    whom = f"--users {this}" if ranking else f"--item {this} --side {shlex.quote(first.name)}"
    steps += [[fits, f"gingham recommend {model} {whom}"]] if predicts else []
    steps += [[alike, f"gingham similar {model} {that} --side {shlex.quote(second.name)}"]]
    if predicts and not ranking:
        steps += [
            ["why a pair is predicted as it is", f"gingham explain {model} {this} {that}"],
            ["predictions of new pairs", f"gingham predict {model} pairs.csv --out predicted.csv"],
        ]
    if certified or ranking:
        return steps
    counts = summary.tables[0].measure == "lift" and len(summary.sides) > 1
    stated = f" --population {','.join(str(side.n_items) for side in summary.sides)}" if counts else ""
    what = "a guarantee, if there are no others" if counts else "a guarantee"
    return [[what, f"gingham certify {model} {file}{stated}"], *steps]


def _cut(name: object, most: int = 24) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= most else text[: most - 1] + "…"
