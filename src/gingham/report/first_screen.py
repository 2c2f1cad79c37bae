"""What the first screen says in plain words: the data, how well it is predicted, what is guaranteed, what next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from gingham.summary.measure import in_unit, unit_of
from gingham.summary.values import MODEL, Errors, Observed, Side, Summary, counted, listed, plural

FEW_LABELS = 4  # that are listed with their shares
NO_BREAK = "\N{NO-BREAK SPACE}"  # a line must not begin with "%"


def short(value: float, digits: int = 3) -> str:
    """A number with sensible digits: 0.937, 12.4, 679, 12,345."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def aligned(values: Sequence[float]) -> list[str]:
    """Numbers of one column, all with the decimals that the largest needs: 0.656, 1.004."""
    top = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not 1e-3 <= top < 100:
        return [short(value) for value in values]
    return [f"{value:.{2 if top >= 10 else 3}f}" for value in values]


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
    singulars = (label.removesuffix(ending) + last for ending, last in (("ies", "y"), ("es", ""), ("s", "")))
    return next((one for one in singulars if one != label and plural(one) == label), label)


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
    top = max(errors.scores.values())
    texts = [percent(value) for value in errors.scores.values()] if named else aligned([*errors.scores.values()])
    bars = [
        {
            "name": PLAIN.get(name, name),
            "text": text,
            "length": value / max(top, 1e-300),
            "model": name == MODEL,
        }
        for (name, value), text in zip(errors.scores.items(), texts)
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
        return f"Simple rules on {tested}; this model was not measured on them."
    name, least = PLAIN.get(best[0], best[0]), best[1]
    own, other = aligned([model, least])
    missed = (
        f"it gets {percent(model)} wrong, and “{name}” {percent(least)}"
        if named
        else f"its {errors.unit} is {own}, and that of the best simple rule, {name}, {other}"
    )
    gain = 1 - model / least if least > 0 else 0.0
    if errors.useful:
        said = f"{percent(gain)} less." if gain >= 5e-4 else "hardly less."
        return f"On {tested}, {missed}: {said}"
    return f"On {tested}, {missed}. Use that rule for prediction, and interpret the groups with care."


def _likelihoods(summary: Summary, errors: Errors, noun: str) -> dict[str, object]:
    """Of counts and edges: how many times as probable they are as if all pairs were equally so."""
    pairs, uniform = pairs_of(summary)
    graph = len(summary.sides) == 1
    names = {"independence": "degrees alone" if graph else "chance alone"}
    even = "equal density everywhere" if graph else "all pairs alike"
    scores = [(names.get(name, PLAIN.get(name, name)), nats, name == MODEL) for name, nats in errors.scores.items()]
    rows = [*scores, (even, uniform, False)]
    times = [(name, _times(uniform, nats), model) for name, nats, model in rows]
    top = max(value for _, value, _ in times)
    bars = [{"name": name, "text": f"×{short(value, 2)}", "length": value / top, "model": model}
            for name, value, model in times]  # fmt: skip
    model, best = errors.model, errors.best_baseline
    tested = _tested(summary, errors, noun)
    sides = listed([plural(side.name) for side in dict.fromkeys(pairs)])
    if model is None or best is None:
        sentence = f"Simple rules on {tested}; this model was not measured on them."
    elif errors.useful:
        factor = short(math.exp(best[1] - model), 2)
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


def pairs_of(summary: Summary) -> tuple[list[Side], float]:
    """The sides whose items meet, and the nats of a pair where all pairs are alike."""
    sides = list(summary.sides)
    if len(sides) <= 2:
        sides = [sides[at] for at in summary.tables[0].sides]
    return sides, sum(math.log(side.n_items) for side in sides)


def _times(uniform: float, nats: float) -> float:
    """How many times as probable as if all pairs were alike."""
    return math.exp(min(uniform - nats, 50.0))


# what is guaranteed


def guarantee_words(
    certificates: Sequence[Mapping[str, object]], refusal: str, noun: str, uniform: float = 0.0
) -> dict[str, object]:
    """One sentence on what is guaranteed, and whether that is better than what a trivial predictor is guaranteed.

    ``uniform`` are the nats of a pair where all pairs are alike: counts are compared with that, as their errors are.
    """
    if not certificates:
        reason = refusal or "No guarantee was asked for."
        if "--population" in refusal:
            reason = "The guarantee needs the total number of items, including those that do not occur here: see below."
        return {"sentence": "Nothing is guaranteed yet.", "verdict": reason, "better": None}
    # All of them hold together, so that the one that says most may be quoted with the confidence of all.
    sure = f"With {100 * (1 - sum(float(str(c['delta'])) for c in certificates)):.3g} % confidence"
    best = next((c for c in certificates if c.get("bound") == "gain"), None)
    best = best or min(certificates, key=lambda c: float(str(c["value"])) * (-1 if c.get("at_least") else 1))
    said = f"{sure}, {_promise(best, noun, uniform)}.{_on_own_rows(best, uniform)}"
    return {"sentence": said, **_verdict(best, uniform)}


def _in_unit(certificate: Mapping[str, object], name: str) -> float | None:
    """A number of a certificate in the measure in which errors are shown."""
    value = certificate.get(name)
    if value is None or certificate.get("bound") == "gain":
        return None if value is None else float(str(value))
    return in_unit(float(str(value)), str(certificate["loss"]))


COVERED = {
    "progressive tests": "It covers the models that were fitted one after another and tested on the next rows",
    "training rows": "It covers this model",
    "held-out rows": "It covers the same model fitted without the held-out rows",
    "cross-fitted rows": "It covers the same model fitted without the rows that test it",
}


def _on_own_rows(certificate: Mapping[str, object], uniform: float) -> str:
    """Whom the guarantee is about, and what was measured on the very rows that it comes from."""
    who, measured = COVERED.get(str(certificate.get("name"))), _in_unit(certificate, "empirical")
    if who is None or measured is None or certificate.get("bound") == "gain":
        return ""
    wrong, density = (
        str(certificate["loss"]).startswith("zero-one"),
        certificate.get("bound") == "density",
    )
    shown = f"it was ×{short(_times(uniform, measured), 2)}" if density else f"it was {short(measured)}"
    shown = f"{percent(measured)} were wrong" if wrong else shown
    return f" {who}; on the {float(str(certificate['n_observations'])):,.0f} rows that it comes from, {shown}."


def _promise(certificate: Mapping[str, object], noun: str, uniform: float) -> str:
    value, loss, many = _in_unit(certificate, "value") or 0.0, str(certificate["loss"]), plural(noun)
    if certificate.get("bound") == "gain":
        if value >= 0:
            return (
                f"the squared error of the groups on new pairs is at most {short(value, 2)} above that of one "
                "answer for all of them"
            )
        return (
            "the groups predict new pairs better than one answer for all of them: their squared error is smaller by at "
            f"least {short(-value, 2)}"
        )
    if certificate.get("bound") == "density":
        often = short(_times(uniform, value), 2)
        times = "" if often == "1" else f"{often} times "
        return f"the groups make a new {noun} on average at least {times}as probable as if all pairs were alike"
    if certificate.get("at_least"):
        return f"the groups predict new features: at least {short(value)} (0 is nothing)"
    if loss.startswith("zero-one"):
        return f"at most {percent(value)} of predictions of new {many} are wrong"
    if loss.startswith("absolute"):
        return f"predictions of new {many} like these are off by at most {short(value)} on average"
    if certificate.get("bound") == "ranking":
        return f"the {loss} of lists for new people is at most {short(value)} on average (the worst possible is 1)"
    worst = _in_unit(certificate, "worst")
    most = "" if worst is None else f" (the worst possible is {short(worst)})"
    return f"the {unit_of(loss)} on new {many} like these is at most {short(value)}{most}"


def _verdict(certificate: Mapping[str, object], uniform: float) -> dict[str, object]:
    """Whether a guarantee is better than that of a predictor without groups."""
    value, trivial = _in_unit(certificate, "value") or 0.0, _in_unit(certificate, "trivial")
    density, gain = (certificate.get("bound") == kind for kind in ("density", "gain"))
    if gain or certificate.get("at_least"):
        better, against = (value < 0 if gain else value > 0), "" if gain else ", which is nothing"
    elif trivial is None:
        return {"verdict": "", "better": None}
    else:
        wrong = str(certificate["loss"]).startswith("zero-one")
        shown = f"×{short(_times(uniform, trivial), 2)}" if density else percent(trivial) if wrong else short(trivial)
        what = "one constant answer"
        if density or certificate.get("unit") == "objects":
            sides = "rows and columns" if density else "views"
            what = f"{sides} that have nothing to do with one another"
        better, against = value < trivial, f": {shown}, for {what}"
    if better:
        return {"verdict": f"That is better than the trivial guarantee{against}.", "better": True}
    return {
        "verdict": f"This is no better than the trivial guarantee{against}. So it does not prove that the groups are "
        "useful.",
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
    fits = f"the best partners of {first.name} {_shortened(titles[0])}"
    alike = f"items similar to {second.name} {_shortened(titles[1])}"
    if files is None:
        mine = f"[{one!r}]" if ranking else f"{one!r}, side={first.name!r}"
        its = f"[{other!r}]" if ranking else f"{other!r}, side={second.name!r}"
        why = f"model.explain({one!r}, [{other!r}])" if ranking else f"model.explain(({one!r}, {other!r}))"
        steps = [["the groups as a table", "model.describe()"]]
        steps += [[fits, f"model.recommend({mine})"]] if predicts else []
        steps += [[alike, f"model.similar({its})"]]
        steps += [["why a pair gets its prediction", why]] if predicts else []
        return steps if certified or ranking else [["a guarantee", "gg.certify(model, X, y)"], *steps]
    model, file = (shlex.quote(name) for name in files)
    this, that = shlex.quote(str(one)), shlex.quote(str(other))
    steps = [["the groups as a table", f"gingham describe {model} --out groups.csv"]]
    whom = f"--users {this}" if ranking else f"--item {this} --side {shlex.quote(first.name)}"
    steps += [[fits, f"gingham recommend {model} {whom}"]] if predicts else []
    steps += [[alike, f"gingham similar {model} {that} --side {shlex.quote(second.name)}"]]
    if predicts and not ranking:
        steps += [
            ["why a pair gets its prediction", f"gingham explain {model} {this} {that}"],
            ["predictions of new pairs", f"gingham predict {model} pairs.csv --out predicted.csv"],
        ]
    if certified or ranking:
        return steps
    counts = summary.tables[0].measure == "lift" and len(summary.sides) > 1
    stated = f" --population {','.join(str(side.n_items) for side in summary.sides)}" if counts else ""
    what = "a guarantee, if there are no other items" if counts else "a guarantee"
    return [[what, f"gingham certify {model} {file}{stated}"], *steps]


def _shortened(name: object, most: int = 24) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= most else text[: most - 1] + "…"
