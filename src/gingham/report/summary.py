"""summarize: a summary and what stands behind it as a dictionary of plain values, all that the page shows."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from gingham.arrays import Bools, Floats, Ints
from gingham.certificates import Certificate
from gingham.errors import GinghamError
from gingham.plots.board import picture
from gingham.plots.named import observed_matrix
from gingham.report.first_screen import data_words, guarantee_words, next_steps, noun_of, pairs_of, prediction_words
from gingham.summary.finding import finding
from gingham.summary.measure import in_unit, unit_of
from gingham.summary.values import SHRINK, Observed, Summary, plural

MAX_ITEMS = 4000  # items of a side that the page knows by name
MAX_POINTS = 1500  # points of a side on the map
MAX_PIXELS = 720  # pixels a side of the picture of the data; more items than that share pixels
MAP = 1000  # places of the map each way
NEIGHBOURS, BEST = 6, 5  # of an item
CANDIDATES = 24  # partners that the model itself is asked about
MOST_NAMES = 20  # different labels of which the likeliest is named

Predictor = Callable[[Sequence[Ints], object], tuple[Floats, Floats]]  # codes, label → score and uncertainty


def summarize(
    summary: Summary,
    observed: Observed | None = None,
    predict: Predictor | None = None,
    *,
    title: str = "What was found",
    label: str | None = None,
    certificates: Mapping[str, Certificate | Mapping[str, object]] | None = None,
    trivial: Mapping[str, float] | None = None,
    refusal: str = "",
    facts: Mapping[str, object] | None = None,
    errors: Mapping[str, float] | None = None,
    files: tuple[str, str] | None = None,
    max_items: int = MAX_ITEMS,
) -> dict[str, object]:
    """What a page shows of a model.

    Parameters
    ----------
    summary : Summary
        ``model.summary_``.
    observed : Observed, optional
        The data in the numbering of the summary: for the picture, plain means, and what need not be recommended.
    predict : callable, optional
        What the model predicts of rows of codes, ``model._predict_codes(0, codes, label)``.
    label : str, optional
        What was observed, "rating" say.
    certificates : mapping from name to Certificate, or to the facts of another guarantee
    trivial : mapping from the same names to numbers
        What is guaranteed of a predictor that knows no groups.
    refusal : str
        Why there is no certificate.
    facts, errors : mappings
        Lines on how it was computed; errors are those on rows that were set aside.
    files : pair of str, optional
        Model file and table, for commands to paste; Python is shown without them.
    max_items : int
        Items of a side that can be searched by name: those with the most data.

    Returns
    -------
    dict
        Numbers, strings, lists and dictionaries only.
    """
    if observed is not None and observed.shape != tuple(side.n_items for side in summary.sides):
        observed = None  # another numbering, of other data
    elif observed is not None:
        summary = shown_first(summary, observed.relations[0].sides)
    table = summary.tables[0]
    label = label or table.label
    shown = [side.listed(max_items) for side in summary.sides]
    page = summary.to_dict(max_items)
    guarantees = [
        in_units({**certificate_facts(name, one), "trivial": (trivial or {}).get(name)})
        for name, one in (certificates or {}).items()
    ]
    for at, side in enumerate(page["sides"]):
        side["many"] = plural(side["name"])
        del side["items"]["strength"]  # in whose order the items are
        side["items"].update(item_facts(summary, observed, predict, at, shown))
    if observed is not None:
        for one, means in zip(page["tables"], plain_means(summary, observed)):
            one["means"] = means
    noun = noun_of(label, table.measure)
    page.update(
        title=title,
        label=label,
        noun=noun,
        finding=finding(summary, label),
        nouns=[noun, plural(noun)],
        data=data_words(summary, observed, label),
        predicts=prediction_words(summary, label),
        guarantee=guarantee_words(guarantees, refusal, noun, pairs_of(summary)[1]),
        next=next_steps(summary, files, bool(guarantees), any(side["items"]["best"] for side in page["sides"])),
        certificates=guarantees,
        refusal=refusal,
        facts=dict(facts or {}),
        held_out={name: float(value) for name, value in (errors or {}).items()},
        picture=None if observed is None else data_picture(summary, observed),
    )
    return page


def shown_first(summary: Summary, sides: Sequence[int]) -> Summary:
    """The summary that begins with the table of these sides, without the held-out errors of other tables."""
    places = [t for t, table in enumerate(summary.tables) if set(table.sides) <= set(sides)]
    if not places or places[0] == 0:
        return summary
    first = summary.tables[places[0]]
    others = tuple(table for table in summary.tables if table is not first)
    return replace(summary, tables=(first, *others), errors=None)


def certificate_facts(name: str, certificate: Certificate | Mapping[str, object]) -> dict[str, object]:
    """A certificate with its explanation and, where bounds can be compared, the others; facts as they are."""
    if isinstance(certificate, Mapping):
        return (
            {"name": name, **certificate}
            if "measure" not in certificate
            else {"name": name, **_of_ranking(certificate)}
        )
    facts: dict[str, object] = {"name": name, **certificate.to_dict(), "explanation": certificate.explain()}
    facts["others"] = [{"bound": row.bound, "value": float(row.value)} for row in certificate.compare()]
    return facts


def _of_ranking(certificate: Mapping[str, object]) -> dict[str, object]:
    """The certificate of a ranking with the names that certificates of losses have."""
    return {
        **certificate, "n_observations": certificate["n_users"],
        "unit": "users", "terms": {}, "explanation": "", "others": [], "worst": 1.0, "bound": "ranking",
    }  # fmt: skip


def in_units(facts: dict[str, object]) -> dict[str, object]:
    """The facts of a certificate with its numbers in the measure in which errors are shown."""
    loss = str(facts.get("loss"))
    shown = {"shown": "value", "observed": "empirical", "most": "worst", "without": "trivial"}
    found = {name: facts.get(own) for name, own in shown.items()}
    numbers = {name: None if v is None else in_unit(float(str(v)), loss) for name, v in found.items()}
    parts: Any = facts.get("strata") or []
    strata = [{**one, "value": in_unit(float(one["value"]), loss)} for one in parts]
    return {**facts, "measure": unit_of(loss), **numbers, "strata": strata}


def plain_means(summary: Summary, observed: Observed) -> list[list[list[float]] | None]:
    """Of tables of numbers: Σ of the numbers themselves over the blocks of leaves, where the summary has deviations."""
    found: list[list[list[float]] | None] = []
    for table in summary.tables:
        relation = next(
            (r for r in observed.relations if r.measure == table.measure and set(table.sides) <= set(r.sides)), None
        )
        if relation is None or relation.measure != "difference" or relation.expected is None:
            found.append(None)
            continue
        left, right = (summary.sides[side] for side in table.sides)
        first = relation.sides.index(table.sides[0])
        second = next(p for p, side in enumerate(relation.sides) if side == table.sides[1] and p != first)
        sums = relation.plain().pair(first, second).sums(left.leaf, right.leaf, (left.n_leaves, right.n_leaves))
        found.append(np.round(sums[..., 1], 2).tolist())
    return found


# items


def item_facts(
    summary: Summary, observed: Observed | None, predict: Predictor | None, at: int, shown: Sequence[Ints]
) -> dict[str, object]:
    """Columns of facts on the listed items of a side: means, neighbours, recommendations, places on the map."""
    side, chosen = summary.sides[at], shown[at]
    labels = side.labels(summary.size[at])
    sure = summary.memberships(at)[np.arange(side.n_items), labels][chosen]
    facts: dict[str, object] = {"sure": [round(v, 2) for v in sure.tolist()], "near": neighbours(summary, at, chosen)}
    facts["x"], facts["y"] = places_on_map(summary, at, chosen)
    if observed is not None:
        facts["mean"] = item_means(observed, at, chosen)
    facts["best"] = None
    if predict is not None:
        try:
            facts["best"] = recommendations(summary, observed, predict, at, shown)
        except GinghamError:  # a model that predicts nothing about pairs says so; the page then shows none
            facts["best"] = None
    return facts


def item_sums(observed: Observed, side: int) -> tuple[str, Floats] | None:
    """How each item of a side goes by itself: the measure, and its sums (n, K) where it first meets another side."""
    for relation, own, other in observed.meetings(side):
        pair = relation.plain().pair(own, other)
        n, columns = (observed.shape[position] for position in pair.sides)
        return pair.measure, pair.sums(np.arange(n), np.zeros(columns, dtype=np.int64), (n, 1))[:, 0]
    return None


def item_means(observed: Observed, side: int, chosen: Ints) -> list[object] | None:
    """The mean number of each item, or the code of its commonest label; None of counts."""
    measure, sums = item_sums(observed, side) or ("lift", np.zeros(0))
    if measure == "lift":
        return None
    if measure == "labels":
        return [int(v) for v in sums.argmax(axis=1)[chosen]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return rounded((sums[:, 1] / sums[:, 0])[chosen], 3)


def neighbours(summary: Summary, at: int, chosen: Ints) -> list[list[int]]:
    """Places of the listed items that are most alike, nearest first; see `Summary.likeness`."""
    side = summary.sides[at]
    found = summary.meeting(at).rule.deviations(side.profile[chosen])
    found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    k = min(NEIGHBOURS, len(chosen) - 1)
    near: list[list[int]] = []
    if k < 1:
        return [[] for _ in chosen]
    for start in range(0, len(chosen), 500):
        alike = found[start : start + 500] @ found.T
        alike[np.arange(len(alike)), start + np.arange(len(alike))] = -np.inf
        top = np.argpartition(-alike, k - 1, axis=1)[:, :k]
        order = np.take_along_axis(-alike, top, axis=1).argsort(axis=1, kind="stable")
        near += np.take_along_axis(top, order, axis=1).tolist()
    return near


def places_on_map(summary: Summary, at: int, chosen: Ints) -> tuple[list[object], list[object]]:
    """Where the items with the most data lie in the plane that tells the groups of the readable size apart best."""
    side, k = summary.sides[at], summary.size[at]
    found = summary.meeting(at).rule.deviations(side.profile[chosen])
    labels, mass = side.labels(k)[chosen], np.maximum(side.mass[chosen], 1e-12)
    found = found - np.average(found, axis=0, weights=mass)
    groups = np.zeros((k, found.shape[1]))
    np.add.at(groups, labels, found * mass[:, None])
    weight = np.maximum(np.bincount(labels, mass, k), 1e-12)
    between = groups / np.sqrt(weight)[:, None]  # means, as heavy as the groups are
    axes = np.linalg.svd(between, full_matrices=False)[2][: min(2, k - 1)]
    rest = (found - found @ axes.T @ axes) * np.sqrt(mass)[:, None]
    spare = np.linalg.svd(rest.T @ rest)[2]  # of two groups, or of one, what is left fills the plane
    points = found @ np.vstack([axes, spare])[:2].T
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(points))])
    low, high = np.quantile(points, 0.005, axis=0), np.quantile(points, 0.995, axis=0)
    scaled = np.rint(MAP * np.clip((points - low) / np.where(high > low, high - low, 1.0), 0, 1)).astype(int)
    drawn = np.zeros(len(chosen), dtype=bool)
    drawn[np.argsort(-mass, kind="stable")[:MAX_POINTS]] = True
    x, y = ([int(v) if shown else None for v, shown in zip(scaled[:, axis], drawn)] for axis in (0, 1))
    return list(x), list(y)


def recommendations(
    summary: Summary, observed: Observed | None, predict: Predictor, at: int, shown: Sequence[Ints]
) -> list[list[list[float]]] | None:
    """For each listed item [place, score, uncertainty, …label] of the partners with the highest predictions.

    The candidates are those that the item's leaf meets best among the partners it was not observed with; the model has
    the last word on them.
    """
    first = summary.tables[0]
    sides = first.sides if len(summary.sides) <= 2 or observed is None else observed.relations[0].sides
    if at not in sides:
        return None
    own = sides.index(at)
    other = next(p for p in range(len(sides)) if p != own)
    partner, mine = summary.sides[sides[other]], shown[sides[other]]
    order = candidates(summary, observed, at, sides[other], mine)
    known = None if observed is None else seen_partners(observed, at, sides[other], shown)
    k = min(CANDIDATES, len(mine))
    place = np.full((len(shown[at]), k), -1)
    for row, code in enumerate(shown[at].tolist()):
        taken: Bools = np.zeros(len(mine), dtype=bool)
        if known is not None:
            taken[known.indices[known.indptr[row] : known.indptr[row + 1]]] = True
        if sides[own] == sides[other]:
            taken[row] = True
        ranked = order[summary.sides[at].leaf[code]]
        free = ranked[~taken[ranked]][:k]
        place[row, : len(free)] = free
    rows, columns = np.nonzero(place >= 0)
    codes = [np.full(len(rows), -1, dtype=np.int32) for _ in sides]
    codes[own], codes[other] = (
        shown[at][rows].astype(np.int32),
        mine[place[rows, columns]].astype(np.int32),
    )
    names = first.labels
    label: Ints | None = None
    if names and len(names) <= MOST_NAMES:
        chances = np.stack([predict(codes, name)[0] for name in names])
        label, score = chances.argmax(axis=0), chances.max(axis=0)
        unsure = 1 - score
    else:
        score, unsure = predict(codes, None)
    found: list[list[list[float]]] = [[] for _ in shown[at]]
    ranked = np.lexsort((-partner.mass[codes[other]], -score, rows))
    for entry in ranked.tolist():
        mine_found = found[rows[entry]]
        if len(mine_found) < BEST and np.isfinite(score[entry]):
            one = [int(place[rows[entry], columns[entry]]), _short(score[entry], 3), _short(unsure[entry], 2)]
            mine_found.append([*one, int(label[entry])] if label is not None else one)
    return found


def candidates(summary: Summary, observed: Observed | None, at: int, other: int, listed: Ints) -> Ints:
    """For every leaf of a side the listed partners, best first: how the leaves meet, and how each stands by itself."""
    table = next(one for one in summary.tables if {at, other} == set(one.sides))
    values = table.rule.shown(table.sums)[0]
    if table.sides[0] != at:
        values = values.T
    partner = summary.sides[other]
    score = values[:, partner.leaf[listed]]
    mass = partner.mass[listed]
    if table.measure == "lift":
        score = np.log(np.maximum(score, 1e-12)) + np.log(np.maximum(mass, 1e-12))
    elif table.measure == "difference" and observed is not None:
        measure, sums = item_sums(observed, other) or ("lift", np.zeros(0))
        if measure == "difference":
            count, total = sums.T
            score = score + ((total - count * total.sum() / count.sum()) / (count + SHRINK))[listed]
    return np.argsort(-score, axis=1, kind="stable")


def seen_partners(observed: Observed, at: int, other: int, shown: Sequence[Ints]) -> sparse.csr_array:
    """Which listed partners each listed item was observed with."""
    relation = next(r for r in observed.relations if at in r.sides and other in r.sides)
    own = relation.sides.index(at)
    pair = relation.pair(own, next(p for p in range(len(relation.sides)) if p != own and relation.sides[p] == other))
    met = pair.matrix((observed.shape[at], observed.shape[other]))
    both = met + met.T if at == other else met  # an edge is known from both of its ends
    return sparse.csr_array(both)[shown[at]][:, shown[other]]


# the picture of the data


def data_picture(summary: Summary, observed: Observed) -> dict[str, object] | None:
    """What was observed, as it came and in the order of the groups, as pictures of grey levels."""
    relation = observed.relations[0]
    if len(relation.sides) < 2:
        return None
    sample, sides = observed_matrix(observed), [summary.sides[side] for side in relation.sides[:2]]
    orders = [side.listed(side.n_items) for side in sides]
    zeros = relation.measure == "lift"
    images = [picture(sample, items, MAX_PIXELS, zeros) for items in ((orders[0], orders[1]), None)]
    if zeros:
        images = [np.log1p(image) for image in images]
    seen = np.concatenate([image[np.isfinite(image)] for image in images])
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    return {
        "rows": images[0].shape[0],
        "columns": images[0].shape[1],
        "low": low,
        "high": high,
        "logarithmic": zeros,
        "holes": bool(np.isnan(images[1]).any()),
        "labels": relation.measure == "labels",
        "groups": png(images[0], low, high),
        "came": png(images[1], low, high),
    }


def png(values: Floats, low: float, high: float) -> str:
    """A data address of an 8-bit picture: 0 where nothing was observed, 1 to 255 from low to high."""
    try:
        from PIL import Image
    except ImportError:
        raise GinghamError("The report draws with Pillow: install gingham[report].") from None
    scaled = np.zeros(values.shape, dtype=np.uint8)
    seen = np.isfinite(values)
    width = high - low if high > low else 1.0
    scaled[seen] = 1 + np.rint(254 * (values[seen] - low) / width).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(scaled).save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def rounded(values: Floats, digits: int = 4) -> list[object]:
    """Short numbers; NaN becomes None."""
    return [_short(value, digits) if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def _short(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")
