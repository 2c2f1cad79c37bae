"""From a model's data and clusters to its reading: trees, a readable size, names, facts, errors beside baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from narwhals.typing import IntoDataFrame

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.reading.facts import Properties, facts_of, properties_of
from gingham.reading.measures import Measure
from gingham.reading.names import MARKS, WORDS, best_names, members_of, others_of, telling
from gingham.reading.observed import Observed, Pair, Refit
from gingham.reading.size import CAP, READABLE, SHARES, Curve, curve_of, held_parts, pooled
from gingham.reading.taste import averages, residuals, taste_clusters
from gingham.reading.trees import Met, Tree, joint_path, orders, trees_of
from gingham.reading.values import MODEL, BlockTable, Cluster, Errors, Mark, Reading, Score, Side
from gingham.reading.words import counted, listed, plural

LEAVES = 60  # of a tree: finer clusters are merged before anything is said of them
FEWEST_HELD = 20  # entries below which nothing can be held out
SHARED = 0.2  # of what its mass would lead one to expect: a cluster that tells less is shared by all
PROFILE = 24  # clusters of the other side over which the profile of an item is kept
WIDE = 2**25  # numbers that the profiles of all items may take; over the readable clusters only, where there are more
ItemInfo = Mapping[str, IntoDataFrame]  # a table with a row an item, by the name of the side


def read_observed(observed: Observed, item_info: ItemInfo | None = None, seed: int = 0) -> Reading:
    """The reading of a model from what it hands over."""
    about = _properties(observed.modes, item_info or {})
    titles = {at: own.titles for at, own in about.items() if own.titles is not None}
    observed = replace(observed, titles={**observed.titles, **titles})
    trial = held_out(observed, seed)
    if trial is not None and not trial.curve.found and observed.relations[0].measure == "difference":
        finer = replace(observed, finer=True)
        again = held_out(finer, seed)
        if again is not None and again.curve.found:
            observed, trial = finer, again
    observed = beyond_averages(observed)
    fine = fine_clusters(observed, observed.clusters, seed)
    tables = tables_of(observed, fine)
    trees = trees_of(tables, observed.n_sides)
    # Finer leaves than people can use are merged first; sums and trees then begin there.
    fine = [tree.groups(min(LEAVES, tree.n_leaves))[labels] for tree, labels in zip(trees, fine)]
    tables = tables_of(observed, fine)
    trees = trees_of(tables, observed.n_sides)
    by_rule, size = _sizes(observed, trees, trial)
    places = orders(trees, tables)
    sides = tuple(
        _side(observed, at, trees[at], places[at], fine, trees, size, tables, about.get(at), seed)
        for at in range(observed.n_sides)
    )
    found = trial is None or trial.curve.found
    shares = () if trial is None else tuple(
        (share, tuple(min(k, tree.n_leaves) for k, tree in zip(trial.curve.keeping(share), trees))) for share in SHARES
    )  # fmt: skip
    relation = observed.relations[0]
    return Reading(
        sides=sides,
        tables=tuple(
            BlockTable(table.sides, table.measure.name, table.sums, *_words(observed, table)) for table in tables
        ),
        size=size,
        size_by_rule=by_rule,
        shares=shares,
        path=joint_path(trees, tables),
        rungs=np.zeros((0, observed.n_sides), dtype=np.int64) if trial is None else np.array(trial.curve.sizes),
        curve=np.zeros(0) if trial is None else trial.curve.gains,
        found=found,
        verdict=_verdict(observed, size, found),
        why=_why(observed, trees, size, by_rule, trial),
        prediction=observed.prediction,
        errors=None if trial is None else trial.errors,
        n_observed=float(relation.weight.sum()),
        notes=observed.notes,
    )  # fmt: skip


def beyond_averages(observed: Observed, seen: Bools | None = None) -> Observed:
    """The same with what averages leave over in the place of numbers; averages of the entries that were seen."""
    relations = [
        residuals(relation, observed.shape, seen if number == 0 else None)
        for number, relation in enumerate(observed.relations)
    ]
    return replace(observed, relations=tuple(relations))


def _properties(modes: Sequence[Mode], item_info: ItemInfo) -> dict[int, Properties]:
    names = [mode.name for mode in modes]
    for name in item_info:
        if name not in names:
            raise GinghamError(f"item_info names a side {name!r}; there are {', '.join(map(repr, names))}.")
    return {at: properties_of(item_info[name], modes[at]) for at, name in enumerate(names) if name in item_info}


def fine_clusters(observed: Observed, known: Sequence[Ints | None], seed: int) -> list[Ints]:
    """Clusters of every side, without empty ones: the model's, or by taste, or by what an item goes with."""
    found: list[Ints | None] = [
        None if labels is None else np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in known
    ]
    for relation in observed.relations:
        alone = len(set(relation.sides)) == len(relation.sides) and all(found[side] is None for side in relation.sides)
        if relation.measure == "difference" and alone:
            for side, labels in zip(relation.sides, taste_clusters(relation, observed.modes, seed, observed.finer)):
                found[side] = labels
    for side, n in enumerate(observed.shape):
        if found[side] is None and n <= LEAVES:
            found[side] = np.arange(n)
    return [_associated(observed, side, found) if f is None else f for side, f in enumerate(found)]


def _associated(observed: Observed, side: int, clusters: Sequence[Ints | None]) -> Ints:
    """Items of a side without clusters go by the cluster of another side that they are most typical of."""
    for relation in observed.relations:
        for i, j in relation.pairs():
            for own, other in ((i, j), (j, i)):
                labels = clusters[relation.sides[other]]
                if relation.sides[own] == side and labels is not None:
                    shape = (observed.shape[side], int(labels.max()) + 1)
                    sums = relation.pair(own, other).sums(np.arange(shape[0]), labels, shape)
                    worth = (relation.rule.coefficients(sums) * sums).sum(axis=-1)
                    return np.unique(worth.argmax(axis=1), return_inverse=True)[1].astype(np.int64)
    return np.zeros(observed.shape[side], dtype=np.int64)


def tables_of(observed: Observed, clusters: Sequence[Ints]) -> list[Met]:
    """How every two sides of every relation meet, in sums over blocks."""
    m = [int(labels.max()) + 1 for labels in clusters]
    found = []
    for relation in observed.relations:
        for i, j in relation.pairs():
            a, b = relation.sides[i], relation.sides[j]
            found.append(Met((a, b), relation.rule, relation.pair(i, j).sums(clusters[a], clusters[b], (m[a], m[b]))))
    return found


# the size


@dataclass(frozen=True, eq=False)
class Trial:
    """What held-out entries say."""

    curve: Curve
    errors: Errors


def held_out(observed: Observed, seed: int) -> Trial | None:
    """Hold entries out, learn clusters from the others, and see what each size gains; None where that is impossible."""
    relation = observed.relations[0]
    if relation.n_entries < FEWEST_HELD:
        return None
    if observed.refit is None and any(observed.clusters[side] is not None for side in relation.sides):
        return None
    trials = [_held_out(observed, held, seed) for held in held_parts(relation.n_entries, seed)]
    return Trial(pooled([trial.curve for trial in trials]), _pooled_errors([trial.errors for trial in trials]))


def _held_out(observed: Observed, held: Bools, seed: int) -> Trial:
    """The same for one part of the entries."""
    relation = observed.relations[0]
    refit = Refit(observed.clusters) if observed.refit is None else observed.refit(~held)
    errors = _errors(observed, held, refit)
    learned = beyond_averages(observed, ~held)
    part = learned.with_first(learned.relations[0].take(~held))
    known = [None if own is None else new for own, new in zip(observed.clusters, refit.clusters)]
    clusters = fine_clusters(part, known, seed)
    curve = curve_of(learned, clusters, held)
    if relation.measure == "lift":
        scores = (Score(MODEL, errors.scores[0].value - float(curve.gains[0])), *errors.scores)
        errors = replace(errors, scores=scores)
    return Trial(curve, errors)


def _pooled_errors(parts: Sequence[Errors]) -> Errors:
    """Errors over all parts: means, of squares where they are roots of mean squares."""
    power = 2 if parts[0].unit.startswith("root") else 1
    weights = [part.n_held for part in parts]
    scores = [
        Score(
            score.name,
            float(np.average([part.scores[i].value ** power for part in parts], weights=weights) ** (1 / power)),
        )
        for i, score in enumerate(parts[0].scores)
    ]
    return Errors(parts[0].unit, tuple(scores), float(sum(weights)))


def _errors(observed: Observed, held: Bools, refit: Refit) -> Errors:
    """Baselines on the held-out entries, and the model where it predicted them."""
    relation = observed.relations[0]
    weight = relation.weight[held]
    if relation.measure == "difference":
        y = np.asarray(relation.values, dtype=np.float64)
        names = [observed.modes[side].name for side in relation.sides]
        which: dict[str, list[int] | None] = {"one constant": None}
        if len(set(names)) == len(names):
            which |= {f"{name} averages": [p] for p, name in enumerate(names)}
        which |= {"both averages" if len(names) == 2 else "all averages": list(range(len(names)))}
        scores = []
        for name, positions in which.items():
            if positions is None:
                miss = y[held] - float(np.average(y[~held], weights=relation.weight[~held]))
            else:
                miss = y[held] - averages(relation, observed.shape, ~held, positions)[held]
            scores.append(Score(name, float(np.sqrt(np.average(miss**2, weights=weight)))))
        model = observed.error
        if refit.predictions is not None:
            model = float(np.sqrt(np.average((y[held] - refit.predictions) ** 2, weights=weight)))
        first = () if model is None else (Score(MODEL, model),)
        return Errors("root mean square error", (*first, *scores), float(weight.sum()))
    if relation.measure == "labels":
        codes = np.asarray(relation.values)
        k = len(relation.labels)
        shares = np.bincount(codes[~held], relation.weight[~held], k)
        scores = [Score("the commonest label", float(np.average(codes[held] != shares.argmax(), weights=weight)))]
        for p, side in enumerate(relation.sides):
            n = observed.shape[side]
            own = np.bincount(
                relation.codes[p][~held].astype(np.int64) * k + codes[~held], relation.weight[~held], n * k
            )
            best = (own.reshape(n, k) + shares / max(shares.sum(), 1e-300)).argmax(axis=1)[relation.codes[p][held]]
            name = f"the commonest label of each {observed.modes[side].name}"
            scores.append(Score(name, float(np.average(codes[held] != best, weights=weight))))
        if refit.predictions is not None:
            scores.insert(0, Score(MODEL, float(np.average(codes[held] != refit.predictions, weights=weight))))
        return Errors("share of wrong labels", tuple(scores), float(weight.sum()))
    nats = 0.0
    for code, side in zip(relation.codes, relation.sides):
        mass = np.bincount(code[~held], relation.weight[~held], observed.shape[side])
        nats -= float(np.average(np.log((mass + 1 / len(mass)) / (mass.sum() + 1))[code[held]], weights=weight))
    return Errors("nats a count", (Score("independence", nats),), float(weight.sum()))


def _sizes(observed: Observed, trees: Sequence[Tree], trial: Trial | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the size by the rule, the size to read at)."""
    leaves = tuple(tree.n_leaves for tree in trees)
    if trial is None:
        size = tuple(min(k, CAP) for k in leaves)
        return size, size
    share = READABLE.get(observed.relations[0].measure, 0.5)
    judged = observed.relations[0].sides  # of others, held-out entries say nothing
    wanted = trial.curve.keeping(share, CAP)
    by_rule = tuple(min(k if at in judged else CAP, m) for at, (k, m) in enumerate(zip(wanted, leaves)))
    if not trial.curve.found:
        return by_rule, by_rule
    given = observed.given or (False,) * len(leaves)
    size = tuple(m if own and m <= CAP else k for own, m, k in zip(given, leaves, by_rule))
    return by_rule, size


# one side


def _side(
    observed: Observed,
    at: int,
    tree: Tree,
    order: Ints,
    clusters: Sequence[Ints],
    trees: Sequence[Tree],
    size: Sequence[int],
    tables: Sequence[Met],
    properties: Properties | None,
    seed: int,
) -> Side:
    mode, leaf = observed.modes[at], clusters[at]
    titles = observed.titles.get(at)
    below = [[i] for i in range(tree.n_leaves)]
    for a, b in tree.merges.tolist():
        below.append(below[a] + below[b])
    members = list(members_of(leaf, below))
    pair, other, measure, labels = _first_meeting(observed, at)
    own_names = _texts(mode, titles)
    other_titles = observed.titles.get(other)
    other_names = _texts(observed.modes[other], other_titles)
    shape = (mode.n_items, observed.shape[other])
    every = np.arange(mode.n_items)
    cut = trees[other].groups(size[other])[clusters[other]]
    coarse = pair.sums(every, cut, (mode.n_items, int(cut.max()) + 1))
    cut = trees[other].groups(min(PROFILE, trees[other].n_leaves))[clusters[other]]
    profile = pair.sums(every, cut, (mode.n_items, int(cut.max()) + 1))
    m = trees[other].n_leaves
    wide = profile
    if mode.n_items * m * profile.shape[2] <= WIDE:
        wide = pair.sums(every, clusters[other], (mode.n_items, m))
    whole = wide.sum(axis=0)
    observed_mass = measure.observed(wide).sum(axis=1)
    told_by, texts = others_of(pair, shape, other_names, labels, seed)
    own_telling, other_telling = telling(own_names), telling(other_names) or pair.measure == "labels"
    by_own = own_telling or not other_telling or other == at
    if by_own and not own_telling:
        own_names = [name if _names_side(name, mode.name) else f"{mode.name} {name}" for name in own_names]
    facts = [()] * len(members) if properties is None else facts_of(properties, members)
    strength = np.zeros(mode.n_items)
    expected = _expected_gain(measure, tree, below, size[at], coarse, members)
    found = []
    for node, (mine, own_facts) in enumerate(zip(members, facts)):
        everything = len(mine) == mode.n_items
        inside = wide[mine].sum(axis=0)
        coef = measure.coefficients(np.stack([inside, whole - inside]))[0]
        score = (wide[mine] * coef).sum(axis=(1, 2))
        if node < tree.n_leaves and not everything:
            strength[mine] = score
        ranked = mine[np.argsort(-score, kind="stable")]
        ordered = np.sort(-score, kind="stable") * -1
        mass = float(observed_mass[mine].sum())
        gain = _gain(measure, coarse, mine)
        shared = (
            not everything
            and expected > 0
            and gain / expected < SHARED * mass / max(float(observed_mass.sum()), 1e-300)
        )
        told = told_by.of(mine)
        typical = tuple(
            Mark(own_names[i], float(s), float(observed_mass[i]))
            for i, s in zip(ranked[:MARKS].tolist(), ordered.tolist())
        )
        distinctive = tuple(Mark(texts[i], s, v) for i, s, v in told.marks)
        if by_own:
            scores = np.full(mode.n_items, -np.inf)
            scores[ranked[: 4 * MARKS]] = ordered[: 4 * MARKS]
            words = [
                own_names[i] for i in best_names(scores, own_names, WORDS if measure.name == "lift" else WORDS - 1)
            ]
            against: list[str] = []
            coverage = 1.0
        else:
            words, against = [texts[i] for i in told.words], [texts[i] for i in told.against]
            coverage = told.coverage
        name = _name(measure, words, by_own, shared, everything, mode.name)
        found.append(
            Cluster(name, tuple(words), tuple(against), coverage, len(mine), mass, bool(shared),
                    () if everything else distinctive, typical, () if everything else tuple(own_facts))
        )  # fmt: skip
    total = sum(met.measure.structure(met.sums) for met in tables if at in met.sides)
    heights = tree.losses / total if total > 1e-12 else np.zeros(len(tree.losses))
    return Side(
        mode.name, mode.items, titles, leaf, observed_mass, strength, profile.astype(np.float32), tree.merges, heights,
        order, tuple(found),
    )  # fmt: skip


def _first_meeting(observed: Observed, side: int) -> tuple[Pair, int, Measure, tuple[str, ...]]:
    """The entries in which a side first meets another, as (own, other); itself in a graph."""
    for relation in observed.relations:
        for i, j in relation.pairs():
            for own, other in ((i, j), (j, i)):
                if relation.sides[own] == side:
                    return relation.pair(own, other), relation.sides[other], relation.rule, relation.labels
    raise GinghamError(f"{observed.modes[side].name!r} meets no other side: there is nothing to read.")


def _texts(mode: Mode, titles: AnyArray | None) -> list[str]:
    return [str(item) for item in (mode.items if titles is None else titles).tolist()]


def _names_side(item: str, side: str) -> bool:
    """Whether the name of an item says what it is: "shop 44" of the side "shop"."""
    return item.lower().startswith(side.lower())


def _gain(measure: Measure, profile: Floats, members: Ints) -> float:
    """What a cluster's entries gain by it, over the readable clusters of the other side."""
    inside = profile[members].sum(axis=0)
    rest = profile.sum(axis=0) - inside
    return float((measure.coefficients(np.stack([inside, rest]))[0] * inside).sum())


def _expected_gain(
    measure: Measure, tree: Tree, below: Sequence[Sequence[int]], k: int, profile: Floats, members: Sequence[Ints]
) -> float:
    """What all clusters of the readable cut gain together."""
    alive = set(range(tree.n_leaves))
    for t, (a, b) in enumerate(tree.merges[: tree.n_leaves - k].tolist()):
        alive -= {a, b}
        alive.add(tree.n_leaves + t)
    return sum(max(_gain(measure, profile, members[node]), 0.0) for node in alive)


def _name(measure: Measure, words: Sequence[str], by_own: bool, shared: bool, everything: bool, side: str) -> str:
    if everything:
        return f"all {plural(side)}"
    listed = ", ".join(words)
    if not words:
        return "nothing in particular"
    if measure.name == "difference" and not by_own:
        return "close to the averages" if shared else f"+ {listed}"
    return f"shared: {listed}" if shared else listed


# sentences


def _words(observed: Observed, table: Met) -> tuple[str, tuple[str, ...], float]:
    """(what was observed, names of labels, variance of numbers) of the relation behind a table."""
    for relation in observed.relations:
        if relation.rule is table.measure and set(table.sides) <= set(relation.sides):
            noise = 1.0
            if relation.measure == "difference":
                noise = float(np.average(np.asarray(relation.values) ** 2, weights=relation.weight))
            return relation.label, relation.labels, noise
    return "label", (), 1.0


NOTHING = {
    "lift": "how often each of them occurs",
    "difference": "their averages",
    "labels": "how common each label is",
}


def _verdict(observed: Observed, size: Sequence[int], found: bool) -> str:
    relation = observed.relations[0]
    judged = sorted(set(relation.sides))
    names = [observed.modes[side].name for side in judged]
    size = [size[side] for side in judged]
    if not found:
        return (
            f"No structure: on entries that were held out, no groups of {listed([plural(n) for n in names])} tell more "
            f"than {NOTHING[relation.measure]}."
        )
    alike = [name for name, k in zip(names, size) if k == 1]
    if alike and len(alike) < len(names):
        return f"All {listed([plural(name) for name in alike])} are alike: nothing here tells them apart."
    shown = listed([f"{counted(k, 'group')} of {plural(name)}" for name, k in zip(names, size)])
    return f"Read as {shown}."


def _why(
    observed: Observed, trees: Sequence[Tree], size: Sequence[int], by_rule: Sequence[int], trial: Trial | None
) -> str:
    shown = " × ".join(str(k) for k in size)
    if trial is None:
        return f"{shown} as the model has them: nothing could be held out to choose by."
    curve = trial.curve
    if not curve.found:
        return "The best grouping gained no more on held-out entries than chance would."
    most = curve.sizes[curve.best]
    best = " × ".join(str(k) for k in most)
    rule = " × ".join(str(k) for k in by_rule)
    least = READABLE.get(observed.relations[0].measure, 0.5)
    at = curve.sizes.index(tuple(by_rule)) if tuple(by_rule) in curve.sizes else None
    kept = least if at is None else float(curve.gains[at] / curve.gains[curve.best])
    if tuple(by_rule) == most:
        said = f"{rule} is the size that knows most about entries it has not seen"
    else:
        said = f"{rule} keep {kept:.0%} of what the best size ({best}) knows about entries it has not seen"
    if tuple(size) != tuple(by_rule):
        return f"{shown}, as given; {said}."
    return f"{said}; fewer would keep less than {least:.0%}."
