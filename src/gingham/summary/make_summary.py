"""From a model's data and clusters to its summary: trees, a readable size, names, facts, errors beside baselines."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode
from gingham.errors import AdviceWarning, GinghamError
from gingham.fitting.merging import MergeTree, merge_tree
from gingham.summary.known_columns import best_known
from gingham.summary.measure import additive_effects, baselines, errors_of, folds_of
from gingham.summary.values import (
    MODEL,
    BlockTable,
    Cluster,
    Errors,
    Fact,
    KnownColumns,
    Mark,
    Measure,
    Observed,
    Pair,
    Refit,
    Score,
    Side,
    Summary,
    counted,
    listed,
    plural,
)

LEAVES = 60  # of a tree: finer clusters are merged before anything is said of them
FEWEST_HELD = 20  # entries below which nothing can be held out
SHARED = 0.2  # of what its mass would lead one to expect: a cluster that tells less is shared by all
PROFILE = 24  # clusters of the other side over which the profile of an item is kept
WIDE = 2**25  # numbers that the profiles of all items may take; over the readable clusters only, where there are more
ItemInfo = Mapping[str, IntoDataFrame]  # a table with a row an item, by the name of the side


def summarize_observed(observed: Observed, item_info: ItemInfo | None = None, seed: int = 0) -> Summary:
    """The summary of a model from what it hands over: its own clusters, merged along their trees."""
    about = _properties(observed.modes, item_info or {})
    titles = {at: own.titles for at, own in about.items() if own.titles is not None}
    observed = replace(observed, titles={**observed.titles, **titles})
    trial = held_out(observed, seed)
    numbers = own_clusters(observed, observed.clusters)
    tables = tables_of(observed, numbers, observed.blocks)
    whole = trees_of(tables, observed.n_sides)
    # More leaves than people can use are merged beforehand. The trees above stay as they are: grown anew, with the
    # other side already merged, they follow the known classes less well.
    into = [tree.groups(min(LEAVES, tree.n_leaves)) for tree in whole]
    leaves = [groups[labels] for groups, labels in zip(into, numbers)]
    trees = [tree.top(LEAVES) for tree in whole]
    tables = [Met(met.sides, met.measure, summed(met.sums, *(into[side] for side in met.sides))) for met in tables]
    by_rule, size = _sizes(observed, trees, trial)
    known = _known(observed, about, trial, size, seed)
    places = orders(trees, tables)
    sides = []
    for at in range(observed.n_sides):
        side = _side(observed, at, trees[at], places[at], leaves, trees, size, tables, about.get(at), seed)
        soft = _shares(observed, at, numbers[at], into[at])
        sides.append(replace(side, own=numbers[at], fine=into[at], fine_merges=whole[at].merges, shares=soft))
    found = trial is None or trial.curve.found
    shares = () if trial is None else tuple(
        (share, tuple(min(k, tree.n_leaves) for k, tree in zip(trial.curve.keeping(share), trees))) for share in SHARES
    )  # fmt: skip
    relation = observed.relations[0]
    return Summary(
        sides=tuple(sides),
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
        verdict=_verdict(observed, size, found, known),
        why=_why(observed, trees, size, by_rule, trial),
        prediction=observed.prediction,
        errors=None if trial is None else trial.errors,
        fidelity=None if trial is None or not observed.distilled else _fidelity(trial, size),
        n_observed=float(relation.weight.sum()),
        known=known,
        notes=observed.notes,
    )  # fmt: skip


def _known(
    observed: Observed, about: Mapping[int, Properties], trial: Trial | None, size: Sequence[int], seed: int
) -> KnownColumns | None:
    """Known columns that predict clearly better than the groups that are shown, where entries could be held out."""
    if trial is None or not about:
        return None
    curve, gain, error, squares = trial.curve, 0.0, 0.0, None
    if curve.found:
        at = curve.sizes.index(tuple(size)) if tuple(size) in curve.sizes else curve.best
        gain, error, squares = float(curve.gains[at]), float(curve.errors[at]), trial.squares
    return best_known(observed, {at: own.partitions for at, own in about.items()}, seed, gain, error, squares)


def _shares(observed: Observed, at: int, numbers: Ints, into: Ints) -> Floats | None:
    """Soft memberships of a side in its leaves, from those in the model's clusters; None where each item has one."""
    soft = observed.memberships[at] if observed.memberships else None
    own = observed.clusters[at]
    if soft is None or own is None:
        return None
    # Clusters without an item of their own hold small shares of others, which stay where they are not shown.
    leaf_of = np.full(soft.shape[1], -1, dtype=np.int64)
    leaf_of[own] = into[numbers]
    shares = np.zeros((len(own), int(into.max()) + 1), dtype=np.float32)
    for cluster in np.flatnonzero(leaf_of >= 0).tolist():
        shares[:, leaf_of[cluster]] += soft[:, cluster]
    return shares


def _fidelity(trial: Trial, size: Sequence[int]) -> float | None:
    """Share of the model's gain over its expectations that a distilled checkerboard of this size reproduces."""
    curve = trial.curve
    if trial.model_gain is None or trial.model_gain <= 0:
        return None
    at = curve.sizes.index(tuple(size)) if tuple(size) in curve.sizes else curve.best
    return float(curve.gains[at] / trial.model_gain)


def _properties(modes: Sequence[Mode], item_info: ItemInfo) -> dict[int, Properties]:
    names = [mode.name for mode in modes]
    for name in item_info:
        if name not in names:
            raise GinghamError(f"item_info names a side {name!r}; there are {', '.join(map(repr, names))}.")
    return {at: properties_of(item_info[name], modes[at]) for at, name in enumerate(names) if name in item_info}


def own_clusters(observed: Observed, known: Sequence[Ints | None]) -> list[Ints]:
    """The clusters of every side, numbered without gaps; items of a side without clusters go by what they go with."""
    found: list[Ints | None] = [
        None if labels is None else np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in known
    ]
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


def tables_of(observed: Observed, clusters: Sequence[Ints], blocks: Floats | None = None) -> list[Met]:
    """How every two sides of every relation meet, in sums over blocks.

    ``blocks`` are the values of the first table's blocks where a model says them, by its own clusters.
    """
    m = [int(labels.max()) + 1 for labels in clusters]
    found: list[Met] = []
    for relation in observed.relations:
        for i, j in relation.pairs():
            a, b = relation.sides[i], relation.sides[j]
            sums = relation.pair(i, j).sums(clusters[a], clusters[b], (m[a], m[b]))
            if blocks is not None and not found:
                sums[..., 1] = sums[..., 0] * blocks
            found.append(Met((a, b), relation.rule, sums))
    return found


# the size


@dataclass(frozen=True, eq=False)
class Trial:
    """What held-out entries say."""

    curve: Curve
    errors: Errors | None
    model_gain: float | None = None  # of the model over what it expects without clusters, in the unit of the curve
    squares: float | None = None  # that the curve starts from, where they are not those of averages


def held_out(observed: Observed, seed: int) -> Trial | None:
    """What the same model, fitted without some entries, knows of them at each size; None where that is impossible."""
    relation = observed.relations[0]
    if relation.n_entries < FEWEST_HELD or observed.refit is None:
        return None
    trials = [_held_out(observed, held) for held in folds_of(relation.n_entries, seed)]
    gains = [trial.model_gain for trial in trials]
    weights = [0.0 if trial.errors is None else trial.errors.n_held for trial in trials]
    known = [gain for gain in gains if gain is not None]
    curve = pooled([trial.curve for trial in trials])
    gain = float(np.average(known, weights=weights)) if len(known) == len(gains) else None
    if observed.distilled and gain is not None and gain > curve.least:
        # Groups matter, too, that reproduce a part of what a model gains which matters.
        curve = replace(curve, least=min(curve.least, PART * gain))
    errors = _pooled_errors([trial.errors for trial in trials if trial.errors is not None])
    left = [trial.squares for trial in trials if trial.squares is not None]
    return Trial(curve, errors, gain, float(np.mean(left)) if left else None)


def _held_out(observed: Observed, held: Bools) -> Trial:
    """The same for one part of the entries."""
    relation = observed.relations[0]
    refit = observed.refit(~held)  # type: ignore[misc]  # asked for before
    learned = observed.with_first(relation if refit.expected is None else replace(relation, expected=refit.expected))
    clusters = own_clusters(learned.with_first(learned.relations[0].take(~held)), refit.clusters)
    if refit.blocks is None:
        curve = curve_of(learned, clusters, held)
    else:
        curve = distilled_curve(learned, clusters, held, refit.blocks)
    errors = _errors(learned, held, refit, curve)
    if relation.measure == "difference" and refit.blocks is None:
        rest = np.asarray(learned.relations[0].residuals)[held]
        return Trial(curve, errors, squares=float(np.average(rest**2, weights=relation.weight[held])))
    if not observed.distilled or errors.model is None:
        return Trial(curve, errors)
    if relation.measure == "difference":  # over the averages
        return Trial(curve, errors, errors.scores[-1].value ** 2 - errors.model**2)
    return Trial(curve, errors, errors.scores[1].value - errors.model)  # over the shares of labels, in nats


def _pooled_errors(parts: Sequence[Errors]) -> Errors | None:
    """Errors over all parts: means, of squares where they are roots of mean squares."""
    if not parts:
        return None
    weights = [part.n_held for part in parts]
    first = parts[0]
    others = tuple(
        (unit, _mean_scores(unit, [part.others[i][1] for part in parts], weights))
        for i, (unit, _) in enumerate(first.others)
    )
    scores = _mean_scores(first.unit, [part.scores for part in parts], weights)
    return replace(first, scores=scores, n_held=float(sum(weights)), how=how_measured(len(parts)), others=others)


def _mean_scores(unit: str, parts: Sequence[Sequence[Score]], weights: Sequence[float]) -> tuple[Score, ...]:
    power = 2 if unit.startswith("root") else 1
    return tuple(
        Score(score.name, float(np.average([part[i].value ** power for part in parts], weights=weights) ** (1 / power)))
        for i, score in enumerate(parts[0])
    )


def _errors(observed: Observed, held: Bools, refit: Refit, curve: Curve) -> Errors:
    """The model and baselines on the held-out entries."""
    relation = observed.relations[0]
    if relation.measure == "lift":
        nats, weight = 0.0, relation.weight
        for code, side in zip(relation.codes, relation.sides):
            mass = np.bincount(code[~held], weight[~held], observed.shape[side])
            shares = np.log((mass + 1 / len(mass)) / (mass.sum() + 1))
            nats -= float(np.average(shares[code[held]], weights=weight[held]))
        scores = (Score(MODEL, nats - float(curve.gains[0])), Score("independence", nats))
        return Errors("mass", "nats per count", scores, float(weight[held].sum()), how_measured(1))
    said = None if refit.predictions is None else np.asarray(refit.predictions)
    named = relation.measure == "labels"
    loss = observed.loss or ("log" if named else "quadratic")
    if named and loss == "log" and (said is None or said.ndim == 1):  # a model that names labels and no probabilities
        loss = "zero-one"
    simple = baselines(
        relation.codes,
        [observed.shape[side] for side in relation.sides],
        np.asarray(relation.values),
        relation.weights,
        ~held,
        [observed.modes[side].name for side in relation.sides],
        loss,
        len(relation.labels) if named else None,
        tied=relation.both_ways,
    )
    every = simple if said is None else {MODEL: said, **simple}
    return errors_of(np.asarray(relation.values)[held], relation.weight[held], every, loss, how_measured(1))


def how_measured(n_parts: int) -> str:
    """Which observations errors were measured on, and what predicted them."""
    if n_parts > 1:
        return f"{n_parts}-fold cross-fitting: the same model with the same settings, fitted without each fold in turn"
    return "a tenth of the observations, held out from a fit of the same model with the same settings"


def _sizes(
    observed: Observed, trees: Sequence[MergeTree], trial: Trial | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the size by the rule, the size to read at): sizes that the user gave are shown as they are."""
    leaves = tuple(tree.n_leaves for tree in trees)
    given = observed.given or (False,) * len(leaves)
    if trial is None:
        by_rule = tuple(min(k, CAP) for k in leaves)
    else:
        judged = observed.relations[0].sides  # of others, held-out entries say nothing
        wanted = trial.curve.keeping(_readable_share(observed), CAP)
        by_rule = tuple(min(k if at in judged else CAP, m) for at, (k, m) in enumerate(zip(wanted, leaves)))
    return by_rule, tuple(m if own else k for own, m, k in zip(given, leaves, by_rule))


def _readable_share(observed: Observed) -> float:
    """Share of what the best size knows that the readable size keeps."""
    return DISTILLED if observed.distilled else READABLE[observed.relations[0].measure]


# one side


def _side(
    observed: Observed,
    at: int,
    tree: MergeTree,
    order: Ints,
    clusters: Sequence[Ints],
    trees: Sequence[MergeTree],
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
    shown = trees[other].groups(size[other])[clusters[other]]
    coarse = pair.sums(every, shown, (mode.n_items, int(shown.max()) + 1))
    shown = trees[other].groups(min(PROFILE, trees[other].n_leaves))[clusters[other]]
    profile = pair.sums(every, shown, (mode.n_items, int(shown.max()) + 1))
    m = trees[other].n_leaves
    wide = profile
    if mode.n_items * m * profile.shape[2] <= WIDE:
        wide = pair.sums(every, clusters[other], (mode.n_items, m))
    whole = wide.sum(axis=0)
    observed_mass = measure.observed(wide).sum(axis=1)
    told_by, texts = others_of(pair, shape, other_names, labels, seed)
    own_telling, other_telling = telling(own_names), telling(other_names) or pair.measure == "labels"
    own_short = short_titles(own_names) if own_telling else own_names
    short = short_titles(texts) if other_telling and pair.measure != "labels" else texts
    by_own = own_telling or not other_telling or other == at
    if by_own and not own_telling:
        own_names = own_short = [name if _names_side(name, mode.name) else f"{mode.name} {name}" for name in own_names]
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
                own_short[i] for i in best_names(scores, own_names, WORDS if measure.name == "lift" else WORDS - 1)
            ]
            against: list[str] = []
            coverage = 1.0
        else:
            words, against = [short[i] for i in told.words], [short[i] for i in told.against]
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
    measure: Measure, tree: MergeTree, below: Sequence[Sequence[int]], k: int, profile: Floats, members: Sequence[Ints]
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
        return "no distinctive items"
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
                noise = float(np.average(np.asarray(relation.residuals) ** 2, weights=relation.weight))
            return relation.label, relation.labels, noise
    return "label", (), 1.0


NOTHING = {
    "lift": "how often each of them occurs",
    "difference": "averages",
    "labels": "how common each label is",
}


def _verdict(observed: Observed, size: Sequence[int], found: bool, known: KnownColumns | None) -> str:
    relation = observed.relations[0]
    judged = sorted(set(relation.sides))
    names = [observed.modes[side].name for side in judged]
    size = [size[side] for side in judged]
    if not found and known is not None:
        return f"Groups of {listed([plural(n) for n in names])} by known columns predict, and no others were found."
    if not found:
        return (
            f"No structure was found: on held-out observations, groups of {listed([plural(n) for n in names])} predict "
            f"no better than {NOTHING[relation.measure]}."
        )
    alike = [name for name, k in zip(names, size) if k == 1]
    if alike and len(alike) < len(names):
        return f"All {listed([plural(name) for name in alike])} are alike: nothing in the data tells them apart."
    shown = listed([f"{counted(k, 'group')} of {plural(name)}" for name, k in zip(names, size)])
    return f"{shown[0].upper()}{shown[1:]}."


def _why(
    observed: Observed, trees: Sequence[MergeTree], size: Sequence[int], by_rule: Sequence[int], trial: Trial | None
) -> str:
    shown = " × ".join(str(k) for k in size)
    if trial is None:
        return f"{shown} clusters are those of the model; no observations could be held out to compare sizes."
    curve = trial.curve
    if not curve.found:
        asked = f" The {shown} groups are those that were asked for." if any(observed.given) and max(size) > 1 else ""
        return f"The best grouping gains too little on held-out observations to matter, or no more than chance.{asked}"
    most = curve.sizes[curve.best]
    best = " × ".join(str(k) for k in most)
    rule = " × ".join(str(k) for k in by_rule)
    least = _readable_share(observed)
    at = curve.sizes.index(tuple(by_rule)) if tuple(by_rule) in curve.sizes else None
    kept = least if at is None else float(curve.gains[at] / curve.gains[curve.best])
    if tuple(by_rule) == most:
        said = f"{rule} groups predict held-out observations best"
    else:
        said = f"{rule} groups keep {kept:.0%} of what the best size, {best}, gains on held-out observations"
    if tuple(size) != tuple(by_rule):
        return f"{shown} groups were asked for; {said}."
    return f"{said}; fewer would keep less than {least:.0%}."


# the one way in: a fitted model, with the data it remembers or with data that is handed over


class Summarizable(Protocol):
    """A fitted model that says what was observed and which clusters it made of it."""

    def observed(self, *data: Any) -> Observed:
        """What is to be read: of the data of the fit, where none is handed over."""


def summarize(model: Summarizable, *data: Any, item_info: ItemInfo | None = None, random_state: int = 0) -> Summary:
    """A coarse, named summary of a fitted model: trees, a readable size, names, facts, errors compared with baselines.

    Parameters
    ----------
    model : fitted model of any family
    *data : what ``fit`` was given, X and y or a matrix or a graph
        Needed for a model that was loaded from a file without a summary, or that is to be read on other data; a model
        that has just been fitted remembers its own.
    item_info : mapping from the name of a side to a frame, optional
        A row an item: its first column (or the one named as the side) has the ids; a column of titles is used for
        names, all others for facts ("student 42 %, else 18 %").
    random_state : int
        Which entries are held out to choose the size.

    Returns
    -------
    Summary
        An `AdviceWarning` says where the model is not better than a baseline, or nothing was found on a side.

    Examples
    --------
    >>> import numpy as np, gingham as gg
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    >>> model = gg.CoOccurrenceClustering(random_state=0).fit(counts)
    >>> summary = gg.summarize(model)
    >>> summary.size, summary.found
    ((2, 2), True)
    """
    summary = summarize_observed(model.observed(*data), item_info, random_state)
    for sentence in summary.advice:
        warnings.warn(sentence, AdviceWarning, stacklevel=2)
    return summary


# How many clusters to read: the coarsest cut that keeps half of what held-out entries gain.

CAP = 12  # clusters a side that people can read
SURE = 3.0  # standard errors by which the best rung must gain
SHARES = (0.5, 0.8, 0.9)
READABLE = {"lift": 0.5, "difference": 0.9, "labels": 0.85}  # share of the best size's gain that is kept
DISTILLED = 0.6  # of a distilled checkerboard: finer ones change with the seed of the model
PART = 0.1  # of the gain of the model that a distilled checkerboard must reproduce
MATTERS = 0.01  # share of the squares beyond the expected numbers that groups must explain


@dataclass(frozen=True, eq=False)
class Curve:
    """What every rung of a path gains on held-out entries.

    Attributes
    ----------
    sizes : list of sizes, all leaves first
    gains : array (rungs,), per observation
    errors : array (rungs,), their standard errors
    least : float
        The gain from which on it matters.
    sure : float
        Standard errors by which the best rung must gain.
    """

    sizes: list[tuple[int, ...]]
    gains: Floats
    errors: Floats
    least: float = 0.0
    sure: float = SURE

    @property
    def best(self) -> int:
        """The rung that gains most, the coarsest of equals."""
        return int(len(self.gains) - 1 - np.argmax(self.gains[::-1]))

    @property
    def found(self) -> bool:
        """Whether the best rung gains more than chance would make it, and enough to matter."""
        best = self.best
        sure = self.gains[best] > max(self.sure * self.errors[best], self.least)
        return bool(sure and max(self.sizes[best]) > 1)

    def keeping(self, share: float, cap: int | None = None) -> tuple[int, ...]:
        """The coarsest rung that keeps a share of the best gain; all ones where there is none."""
        if not self.found:
            return tuple(1 for _ in self.sizes[0])
        at = int(np.flatnonzero(self.gains >= share * self.gains[self.best])[-1])
        return tuple(k if cap is None else min(k, cap) for k in self.sizes[at])


def pooled(curves: Sequence[Curve]) -> Curve:
    """One curve from those of several parts, rung by rung from the coarsest on; sizes are the medians."""
    if len(curves) == 1:
        return curves[0]
    length = max(len(curve.sizes) for curve in curves)
    sizes, gains, errors = [], np.zeros(length), np.zeros(length)
    for left in range(length):
        at = [max(len(curve.sizes) - 1 - left, 0) for curve in curves]
        middle = np.median([curve.sizes[i] for curve, i in zip(curves, at)], axis=0)
        sizes.append(tuple(int(k) for k in np.floor(middle + 0.5)))
        gains[left] = np.mean([curve.gains[i] for curve, i in zip(curves, at)])
        errors[left] = np.sqrt(np.sum([curve.errors[i] ** 2 for curve, i in zip(curves, at)])) / len(curves)
    least = float(np.mean([curve.least for curve in curves]))
    return Curve(sizes[::-1], gains[::-1], errors[::-1], least, curves[0].sure)


def distilled_curve(observed: Observed, clusters: Sequence[Ints], held: Bools, blocks: Floats) -> Curve:
    """What cuts of a distilled checkerboard gain on held-out entries over averages.

    The additive effects are those of the seen entries given the blocks of each cut; with one block they are averages.
    """
    first = observed.relations[0]
    known = first.take(~held)
    seen = tables_of(observed.with_first(known), clusters, blocks)
    trees = trees_of(seen, observed.n_sides)
    ladder = rungs(trees, joint_path(trees, seen))
    y, asked, weight = np.asarray(known.values, dtype=np.float64), first.take(held), first.weight[held]
    averages = additive_effects(known.codes, observed.shape, y, known.weights)
    squares = (np.asarray(asked.values) - averages.at(asked.codes)) ** 2
    gains, errors = [], []
    for size in ladder:
        groups = [tree.groups(k)[labels] for tree, k, labels in zip(trees, size, clusters)]
        sums = summed(seen[0].sums, *(tree.groups(k) for tree, k in zip(trees, size)))
        means = sums[..., 1] / np.maximum(sums[..., 0], 1e-12)
        block, test = (means[tuple(g[c] for g, c in zip(groups, part.codes))] for part in (known, asked))
        effects = additive_effects(known.codes, observed.shape, y - block, known.weights, averages.shrinkage)
        gain = squares - (np.asarray(asked.values) - effects.at(asked.codes) - test) ** 2
        mean = float(np.average(gain, weights=weight))
        gains.append(mean)
        errors.append(float(np.sqrt(((weight * (gain - mean)) ** 2).sum()) / weight.sum()))
    gains[-1] = 0.0  # one block is no group
    return Curve(ladder, np.array(gains), np.array(errors), MATTERS * float(np.average(squares, weights=weight)), 2.0)


def curve_of(observed: Observed, clusters: Sequence[Ints], held: Bools) -> Curve:
    """The held-out gain along the joint path of the trees that the other entries make.

    Entries with an item that the others do not know count as no gain: nothing is said of them.
    """
    sizes = [int(labels.max()) + 1 for labels in clusters]
    first = observed.relations[0]
    seen = tables_of(observed.with_first(first.take(~held)), clusters)
    tests, known = [], first.take(~held)
    for i, j in first.pairs():
        a, b = first.sides[i], first.sides[j]
        whole = first.take(held).pair(i, j)
        asked = known_entries(whole, known.pair(i, j), observed, (a, b))
        test = _Held.of(asked, clusters[a], clusters[b], (sizes[a], sizes[b]))
        tests.append(replace(test, weight=float(whole.weight.sum()), squares=float((whole.weight**2).sum())))
    least = 0.0
    if first.measure == "difference":
        squares = np.asarray(first.residuals, dtype=np.float64)[held] ** 2
        least = MATTERS * float(np.average(squares, weights=first.weight[held]))
    trees = trees_of(seen, observed.n_sides)
    path = joint_path(trees, seen)
    ladder = rungs(trees, path)
    gains, errors = [], []
    for size in ladder:
        groups = [tree.groups(k) for tree, k in zip(trees, size)]
        total, square, weight = 0.0, 0.0, 0.0
        for met, test in zip(seen, tests):
            coarse = summed(met.sums, groups[met.sides[0]], groups[met.sides[1]])
            gain, second, n = test.gain(met, coarse, groups[met.sides[0]], groups[met.sides[1]])
            total, square, weight = total + gain, square + second, weight + n
        mean = total / max(weight, 1e-300)
        gains.append(mean)
        errors.append(float(np.sqrt(max(square - mean * mean * squares_of(tests), 0.0))) / max(weight, 1e-300))
    return Curve(ladder, np.array(gains), np.array(errors), least)


def known_entries(held: Pair, seen: Pair, observed: Observed, sides: tuple[int, int]) -> Pair:
    """Held-out entries whose row and column both have entries that were seen: of others nothing is known."""
    rows = np.bincount(seen.rows, minlength=observed.shape[sides[0]]) > 0
    columns = np.bincount(seen.columns, minlength=observed.shape[sides[1]]) > 0
    keep = rows[held.rows] & columns[held.columns]
    values = None if held.values is None else held.values[keep]
    return held._replace(rows=held.rows[keep], columns=held.columns[keep], weight=held.weight[keep], values=values)


@dataclass(frozen=True, eq=False)
class _Held:
    """Held-out entries as sums over blocks of leaves, with second moments."""

    sums: Floats  # (m_1, m_2, K)
    seconds: Floats  # (m_1, m_2, K'): Σ w² t², and for numbers Σ w², Σ w² e, Σ w² e²
    weight: float
    squares: float  # Σ w²

    @classmethod
    def of(cls, pair: Pair, rows: Ints, columns: Ints, shape: tuple[int, int]) -> _Held:
        sums = pair.sums(rows, columns, shape)
        seconds = pair.sums(rows, columns, shape, squared=True)
        if pair.measure == "difference":
            squares = pair._replace(values=np.asarray(pair.values) ** 2).sums(rows, columns, shape, squared=True)
            seconds = np.concatenate([seconds, squares[..., 1:]], axis=-1)
        return cls(sums, seconds, float(pair.weight.sum()), float((pair.weight**2).sum()))

    def gain(self, met: Met, coarse: Floats, rows: Ints, columns: Ints) -> tuple[float, float, float]:
        """(Σ gain, Σ gain², Σ weight) over the entries, in blocks of a cut."""
        coef = met.measure.coefficients(coarse)
        sums, seconds = summed(self.sums, rows, columns), summed(self.seconds, rows, columns)
        total = float((coef * sums).sum())
        if seconds.shape[2] == coef.shape[2]:  # one statistic of an entry is not zero
            return total, float((coef * coef * seconds).sum()), self.weight
        # (a + b e)² with a = −mean², b = 2 mean
        a, b = coef[..., 0], coef[..., 1]
        square = a * a * seconds[..., 0] + 2 * a * b * seconds[..., 1] + b * b * seconds[..., 2]
        return total, float(square.sum()), self.weight


def squares_of(tests: Sequence[_Held]) -> float:
    """Σ w² over all held-out entries."""
    return sum(test.squares for test in tests)


Part = tuple[Measure, Floats]  # how a side meets others: sums (m, columns, K) of its clusters


# A merge tree a side, one path down all of them, and the order in which clusters are shown.


@dataclass(frozen=True, eq=False)
class Met:
    """Two sides that meet, by their positions, and the sums over the blocks of their leaves (m_1, m_2, K)."""

    sides: tuple[int, int]
    measure: Measure
    sums: Floats

    def part(self, side: int) -> list[Part]:
        """What a side sees of it: its clusters × those of the other side; both ways where it meets itself."""
        turned = np.swapaxes(self.sums, 0, 1)
        if self.sides[0] == self.sides[1] == side and np.array_equal(self.sums, turned):
            return [(self.measure, self.sums)]
        seen = [self.sums] * (self.sides[0] == side) + [turned] * (self.sides[1] == side)
        return [(self.measure, sums) for sums in seen]


def trees_of(tables: Sequence[Met], n_sides: int) -> list[MergeTree]:
    """The merge tree of every side, each with all others as fine as they are."""
    return [
        merge_tree([(measure.cost, sums) for table in tables for measure, sums in table.part(side)])
        for side in range(n_sides)
    ]


def joint_path(trees: Sequence[MergeTree], tables: Sequence[Met]) -> Ints:
    """Which tree to climb next, from all leaves to one block: the one whose next merge loses least as things stand."""
    groups: list[Ints] = [np.arange(tree.n_leaves) for tree in trees]
    done = [0] * len(trees)
    path = []
    while any(at < len(tree.merges) for at, tree in zip(done, trees)):
        current = [Met(t.sides, t.measure, summed(t.sums, groups[t.sides[0]], groups[t.sides[1]])) for t in tables]
        costs = {}
        for side, (at, tree) in enumerate(zip(done, trees)):
            if at < len(tree.merges):
                before, after = groups[side], tree.groups(tree.n_leaves - at - 1)
                costs[side] = _lost(current, side, before, after)
        side = min(costs, key=lambda s: (costs[s], s))
        done[side] += 1
        groups[side] = trees[side].groups(trees[side].n_leaves - done[side])
        path.append(side)
    return np.array(path, dtype=np.int64)


def _lost(tables: Sequence[Met], side: int, before: Ints, after: Ints) -> float:
    """What going from one cut of a side to the next coarser one loses."""
    into = np.zeros(int(before.max()) + 1, dtype=np.int64)
    into[before] = after
    total = 0.0
    for table in tables:
        for measure, sums in table.part(side):
            coarse = np.zeros((int(into.max()) + 1, *sums.shape[1:]))
            np.add.at(coarse, into, sums)
            total += float(measure.cost(coarse).sum() - measure.cost(sums).sum())
    return total


def summed(sums: Floats, rows: Ints, columns: Ints) -> Floats:
    """Sums of coarser blocks (k_1, k_2, K), from the cluster of each row and each column."""
    out: Floats = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1, sums.shape[2]))
    np.add.at(out, (rows[:, None], columns[None, :]), sums)
    return out


def rungs(trees: Sequence[MergeTree], path: Ints) -> list[tuple[int, ...]]:
    """The sizes along a path, all leaves first."""
    sizes = [tuple(tree.n_leaves for tree in trees)]
    for side in path.tolist():
        last = list(sizes[-1])
        last[side] -= 1
        sizes.append(tuple(last))
    return sizes


def leaf_order(tree: MergeTree, profiles: Floats, towards: Floats | None = None) -> Ints:
    """Leaves such that every node is a run of them, neighbours alike; or by where they point, where that is told.

    ``profiles`` (m, columns) say which leaves are alike; ``towards`` (m,) is a place on the other side for each leaf:
    every node is then flipped so that places rise, and a diagonal appears.
    """
    m = tree.n_leaves
    if m < 3 and towards is None:
        return np.arange(m)
    if towards is None:
        heights = np.arange(1.0, m)  # only the shape of the tree matters here
        linkage = np.column_stack([tree.merges, heights, np.ones(m - 1)])
        from scipy.cluster.hierarchy import leaves_list, optimal_leaf_ordering  # loaded when a tree is drawn
        from scipy.spatial.distance import pdist

        return np.asarray(leaves_list(optimal_leaf_ordering(linkage, pdist(profiles) + 1e-12)), dtype=np.int64)
    below = [[leaf] for leaf in range(m)]
    for a, b in tree.merges.tolist():
        first, second = below[a], below[b]
        straight = np.mean(towards[first]) <= np.mean(towards[second])
        below.append(first + second if straight else second + first)
    return np.array(below[-1], dtype=np.int64)


def orders(trees: Sequence[MergeTree], tables: Sequence[Met]) -> list[Ints]:
    """The order of every side: the first by likeness, others towards the side they first meet."""
    found: dict[int, Ints] = {}
    for table in tables:
        values = table.measure.coefficients(table.sums)[..., -1]
        a, b = table.sides
        if a not in found and b not in found:
            found[a] = leaf_order(trees[a], np.clip(values, *_reach(values)))
        for new, old, seen in ((b, a, values), (a, b, values.T)):
            if new not in found:
                place = np.empty(len(found[old]))
                place[found[old]] = np.arange(len(place))
                pull = np.maximum(seen, 0.0) ** 2 + 1e-9
                found[new] = leaf_order(trees[new], seen.T, (pull * place[:, None]).sum(axis=0) / pull.sum(axis=0))
    return [found[side] for side in range(len(trees))]


def _reach(values: Floats) -> tuple[float, float]:
    """Absences say less than presences: blue only as far as red."""
    top = float(np.abs(values).max()) if values.size else 1.0
    high = float(values.max()) if values.size else 1.0
    return -max(high, 1e-12), max(top, 1e-12)


# Names of clusters: words that tell them apart, and that most of their members share.

WORDS = 4  # in a name
AGAINST = 2  # of them, what members like less than others
FADE = 0.5  # members that have a word already count so much less for the next one
LEAST_SHARE = 0.02  # of the members that must have a word
FLOOR = 0.25  # of the best score that a word must reach
LOOKED_AT = 500  # candidates
DATED = re.compile(r"(?: \([^()]*\))* \(\d{4}\)$")  # of a film, with other titles before the year
ARTICLE = re.compile(r"^(.*), (The|A|An)$")
USUAL = 0.9  # of the titles that must have a year
MARKS = 8  # items that are listed with a cluster
STEADY = 10.0  # ratings with nothing to say, against which the sum of an item's is weighed
MOST_ENTRIES = (
    400_000  # of a cluster that its name is made of; a part of the members, drawn evenly, where there are more
)
STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "is",
        "it",
        "that",
        "and",
        "for",
        "on",
        "was",
        "with",
        "as",
        "be",
        "this",
        "are",
        "by",
        "or",
        "at",
        "from",
        "not",
        "have",
        "has",
        "had",
        "but",
        "they",
        "i",
        "you",
        "he",
        "we",
        "his",
        "her",
        "their",
        "its",
        "which",
        "were",
        "been",
        "will",
        "would",
        "can",
        "could",
        "there",
        "if",
        "what",
        "who",
        "when",
    ]
)


def short_titles(titles: Sequence[str]) -> list[str]:
    """Titles as people say them, for names of clusters: "Postman, The (1997)" of a catalogue is "The Postman".

    Years go only where nearly all titles have one, and stay where two titles would then be the same.
    """
    dated = sum(bool(DATED.search(title)) for title in titles) >= USUAL * len(titles)
    bare = [DATED.sub("", title) if dated else title for title in titles]
    said = [ARTICLE.sub(r"\2 \1", title) for title in bare]
    often = Counter(said)
    return [new if often[new] == 1 else title for new, title in zip(said, titles)]


def telling(names: Sequence[str]) -> bool:
    """Whether names say something by themselves: words and titles do, numbers and "user 18" do not."""
    step = max(1, len(names) // 400)
    stems = [re.sub(r"[\d\W_]+", " ", name).strip().lower() for name in names[::step]]
    worded = [stem for stem in stems if re.search(r"[^\W\d_]{2}", stem)]
    return len(worded) >= 0.5 * len(stems) and len(set(worded)) >= 0.5 * len(worded) and len(set(worded)) > 1


def alike(a: str, b: str) -> bool:
    """Two forms of one word: library, libraries; key, keys. Titles only where they are equal."""
    a, b = a.lower(), b.lower()
    if a == b or " " in a or " " in b:
        return a == b
    short = min(len(a), len(b))
    common = next((i for i in range(short) if a[i] != b[i]), short)
    return (common >= max(3, short - 1) and abs(len(a) - len(b)) <= 4) or common >= 7


def picked(score: Floats, names: Sequence[str], taken: Sequence[int]) -> int | None:
    """The item with the highest finite score whose name is no form of one that is taken."""
    order = np.argsort(-score, kind="stable")[:LOOKED_AT]
    for i in order.tolist():
        if not np.isfinite(score[i]):
            return None
        name = names[i]
        if len(name) > 1 and name.lower() not in STOP and not any(alike(name, names[j]) for j in taken):
            return i
    return None


def best_names(score: Floats, names: Sequence[str], n: int = WORDS) -> list[int]:
    """Items with the highest scores, one for each word."""
    found: list[int] = []
    while len(found) < n and (i := picked(score, names, found)) is not None:
        found.append(i)
    return found


@dataclass(frozen=True, eq=False)
class Told:
    """What the other side's items say of a cluster."""

    words: list[int]  # items of the other side, best first
    against: list[int]
    coverage: float  # share of the members that have one of the words
    marks: list[tuple[int, float, float]]  # (item, score, value)


class Others:
    """The items of the other side as words for clusters of this one."""

    def __init__(self, pair: Pair, shape: tuple[int, int], names: Sequence[str], seed: int = 0) -> None:
        self.names, self.seed = names, seed
        self.counts = pair.matrix(shape)
        self.total = np.asarray(self.counts.sum(axis=0)).ravel()

    def of(self, members: Ints) -> Told:
        """The words of a cluster, from the positions of its members."""
        raise NotImplementedError  # pragma: no cover

    def part(self, members: Ints) -> Ints:
        """The members, or so many of them, drawn evenly, as are looked at."""
        entries = int(np.diff(self.counts.indptr)[members].sum())
        if entries <= MOST_ENTRIES:
            return members
        rng = np.random.default_rng([self.seed, len(members)])
        keep = max(1, int(len(members) * MOST_ENTRIES / entries))
        return np.sort(rng.choice(members, keep, replace=False))

    def covered(self, inside: sparse.csr_array, words: Sequence[int]) -> float:
        """Share of the members with at least one of the words."""
        if not len(words) or not inside.shape[0]:
            return 0.0
        wanted = np.zeros(inside.shape[1], dtype=bool)
        wanted[list(words)] = True
        rows = np.repeat(np.arange(inside.shape[0]), np.diff(inside.indptr))
        return len(np.unique(rows[wanted[inside.indices]])) / inside.shape[0]


class Counted(Others):
    """Counts: score(i) = p(i|c) ln p(i|c)/p(i), with coverage.

    After each pick, members that have the word weigh half as much for the next one: without that the larger half of a
    mixed cluster takes all the words.
    """

    def of(self, members: Ints) -> Told:
        inside = self.counts[self.part(members)]
        own = np.asarray(inside.sum(axis=0)).ravel()
        share = self.total / max(float(self.total.sum()), 1e-300)
        p = own / max(float(own.sum()), 1e-300)
        plain = np.where(p > share, xlogy(p, p / np.maximum(share, 1e-300)), -np.inf)
        top = float(plain.max(initial=-np.inf))
        if not np.isfinite(top) or top <= 0:
            return Told([], [], 0.0, [])
        by_column = sparse.csc_array(inside)
        has = np.diff(by_column.indptr)
        least = min(max(3.0, LEAST_SHARE * len(members)), 0.5 * inside.shape[0])
        enough = (has >= least) & (plain >= FLOOR * top)
        weights = np.ones(inside.shape[0])
        words: list[int] = []
        while len(words) < WORDS:
            now = inside.T @ weights
            now = now / max(float(now.sum()), 1e-300)
            score = np.where(enough & (now > share), xlogy(now, now / np.maximum(share, 1e-300)), -np.inf)
            i = picked(score, self.names, words)
            if i is None:
                break
            words.append(i)
            weights[by_column.indices[by_column.indptr[i] : by_column.indptr[i + 1]]] *= FADE
        order = [i for i in np.argsort(-plain, kind="stable")[:MARKS].tolist() if np.isfinite(plain[i])]
        marks = [(i, float(plain[i]), float(p[i] / max(share[i], 1e-300))) for i in order]
        return Told(words or order[:WORDS], [], self.covered(inside, words or order[:WORDS]), marks)


class Rated(Others):
    """Numbers beyond averages: score(i) = Σ e/√(n + 10) over the members' numbers for item i, with + and −."""

    def __init__(self, pair: Pair, shape: tuple[int, int], names: Sequence[str], seed: int = 0) -> None:
        super().__init__(pair, shape, names, seed)
        self.sums = pair.matrix(shape, 1)

    def of(self, members: Ints) -> Told:
        mine = self.part(members)
        inside = self.counts[mine]
        n = np.asarray(inside.sum(axis=0)).ravel()
        e = np.asarray(self.sums[mine].sum(axis=0)).ravel()
        score = e / np.sqrt(n + STEADY)
        value = e / (n + SHRINK_VALUE)
        words = best_names(np.where(score > 0, score, -np.inf), self.names, WORDS - 1)
        against = best_names(np.where(score < 0, -score, -np.inf), self.names, AGAINST)
        order = np.argsort(-np.abs(score), kind="stable")[:MARKS].tolist()
        marks = [(i, float(score[i]), float(value[i])) for i in order if score[i] != 0]
        return Told(words, against, self.covered(inside, words), marks)


class Labelled(Others):
    """Names of labels: items on which members' labels differ from everybody's, by n ln p(label|members)/p(label)."""

    def __init__(
        self, pair: Pair, shape: tuple[int, int], names: Sequence[str], labels: Sequence[str], seed: int = 0
    ) -> None:
        super().__init__(pair, shape, names, seed)
        self.labels = labels
        self.by_label = [pair.matrix(shape, k) for k in range(len(labels))]
        self.totals = np.stack([np.asarray(m.sum(axis=0)).ravel() for m in self.by_label], axis=1)
        self.pairs = [f"{name}: {label}" for name in names for label in labels]

    def of(self, members: Ints) -> Told:
        mine = self.part(members)
        own = np.stack([np.asarray(m[mine].sum(axis=0)).ravel() for m in self.by_label], axis=1)
        overall = (self.totals + 1.0) / (self.totals.sum(axis=1, keepdims=True) + len(self.labels))
        share = (own + overall) / (own.sum(axis=1, keepdims=True) + 1.0)
        score = xlogy(own, share / overall).ravel()
        k = len(self.labels)
        words = best_names(np.where(score > 0, score, -np.inf), self.pairs, WORDS - 1)
        order = [i for i in np.argsort(-score, kind="stable")[:MARKS].tolist() if score[i] > 0]
        marks = [(i, float(score[i]), float((share / overall).ravel()[i])) for i in order]
        return Told(words, [], self.covered(self.counts[mine], [i // k for i in words]), marks)

    def name_of(self, i: int) -> str:
        return self.pairs[i]


SHRINK_VALUE = 5.0  # numbers that an average shown with an item starts from


def others_of(
    pair: Pair, shape: tuple[int, int], names: Sequence[str], labels: Sequence[str] = (), seed: int = 0
) -> tuple[Others, Sequence[str]]:
    """The other side's items as words, by the kind of data, and the texts that `Told` numbers."""
    if pair.measure == "labels":
        found = Labelled(pair, shape, names, labels, seed)
        return found, found.pairs
    return (Rated if pair.measure == "difference" else Counted)(pair, shape, names, seed), names


def members_of(leaf: Ints, below: Sequence[Sequence[int]]) -> Iterator[Ints]:
    """The items of every node, from the leaf of each item and the leaves of each node."""
    order = np.argsort(leaf, kind="stable")
    ends = np.cumsum(np.bincount(leaf, minlength=max(max(leaves) for leaves in below) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    for leaves in below:
        yield np.concatenate([order[starts[i] : ends[i]] for i in leaves])


# Side columns: which properties members have more often than others, false discoveries controlled.

RATE = 0.05  # of false discoveries
LEAST_ODDS = 0.3  # log-odds below which a difference is real but not worth a word
MOST = 4  # facts a cluster
MOST_VALUES = 60  # a column of more different texts says nothing about groups
PARTS = 5  # of a column of numbers, equally full
TITLES = ("title", "name", "label")
SEPARATORS = ("|", ";")


@dataclass(frozen=True, eq=False)
class Properties:
    """Yes-or-no properties of the items of a side, and what items are called.

    Attributes
    ----------
    texts : list of str
    flags : bool array of shape (n_items, properties)
    known : bool array of shape (n_items,)
        Items that the table has a row for.
    titles : array of str of shape (n_items,) or None
    partitions : mapping from the name of a column to the group of every item by its value
        Of columns with few values, one for each item; items without a value are a group of their own.
    """

    texts: list[str]
    flags: Bools
    known: Bools
    titles: AnyArray | None = None
    partitions: Mapping[str, Ints] = field(default_factory=dict)


def properties_of(frame: IntoDataFrame, mode: Mode) -> Properties:
    """Properties from a table with a row an item; its first column, or the one named as the side, has the ids."""
    table, columns = nw.from_native(frame, eager_only=True), info_columns(frame)
    at = id_column_of(columns, mode.name)
    codes = matched(frame, mode)
    rows = np.flatnonzero(codes >= 0)
    known = np.zeros(mode.n_items, dtype=bool)
    known[codes[rows]] = True
    texts: list[str] = []
    flags: list[Bools] = []
    titles: AnyArray | None = None
    partitions: dict[str, Ints] = {}
    rest = [j for j in range(len(columns)) if j != at]
    named = next((j for j in rest if columns[j].lower() in TITLES), None)
    for j in rest:
        values = table[:, j].to_numpy()[rows]
        if titles is None and (j == named or (named is None and _all_different(values))):
            titles = np.array([str(item) for item in mode.items.tolist()], dtype=object)
            for code, value in zip(codes[rows].tolist(), values.tolist()):
                if value is not None and value == value and str(value).strip():
                    titles[code] = str(value)
            continue
        start = len(flags)
        for text, having in _flags(columns[j], values):
            full = np.zeros(mode.n_items, dtype=bool)
            full[codes[rows][having]] = True
            texts.append(text)
            flags.append(full)
        own = np.array(flags[start:])
        if 0 < len(own) <= CAP and own.sum(axis=0).max() <= 1:  # no lists, of which an item has several
            group = np.where(own.any(axis=0), own.argmax(axis=0), len(own))
            partitions[columns[j]] = np.unique(group, return_inverse=True)[1].astype(np.int64)
    table_of_flags = np.stack(flags, axis=1) if flags else np.zeros((mode.n_items, 0), dtype=bool)
    partitions = {name: group for name, group in partitions.items() if group.max() > 0}
    return Properties(texts, table_of_flags, known, titles, partitions)


def info_columns(frame: IntoDataFrame) -> list[str]:
    """The columns of a table about items."""
    return [str(name) for name in nw.from_native(frame, eager_only=True).columns]


def id_column_of(columns: Sequence[str], side: str) -> int:
    """Which column of a table about items has their ids: the one named as the side, else the first."""
    return columns.index(side) if side in columns else 0


def matched(frame: IntoDataFrame, mode: Mode) -> Ints:
    """The item that each row of a table about items speaks of, −1 for none; a table about none of them is refused."""
    table, columns = nw.from_native(frame, eager_only=True), info_columns(frame)
    if table.shape[1] < 1 or table.shape[0] == 0:
        raise GinghamError(f"item_info for {mode.name!r} is empty: it needs ids and at least one column about them.")
    at = id_column_of(columns, mode.name)
    ids = table[:, at].to_numpy()
    codes = _encoded(mode, ids)
    if (codes < 0).all():
        name = "" if columns[at] == mode.name else f", or name the column of ids {mode.name!r}"
        raise GinghamError(
            f"The table about {plural(mode.name)} knows none of them: the data have ids such as "
            f"{mode.items.tolist()[0]!r}, and its column {columns[at]!r} such as {ids.tolist()[0]!r}. Write them "
            f"alike{name}."
        )
    return codes


def _encoded(mode: Mode, ids: AnyArray) -> Ints:
    """Codes of ids; "7" in a table is 7 in the data, and the other way round."""
    codes = mode.encode(ids)
    if (codes >= 0).any():
        return codes
    at = {str(item): code for code, item in enumerate(mode.items.tolist())}
    return np.array([at.get(str(value), -1) for value in ids.tolist()], dtype=np.int64)


def _all_different(values: AnyArray) -> bool:
    """Whether a column of texts names its rows."""
    if values.dtype.kind not in "OU" or len(values) < 2:
        return False
    texts = [str(value) for value in values.tolist()]
    return len(set(texts)) >= 0.95 * len(texts) and telling(texts)


def _flags(name: str, values: AnyArray) -> list[tuple[str, Bools]]:
    """A column as yes-or-no properties: values of few, parts of numbers, members of lists such as "Drama|War"."""
    if values.dtype.kind == "b":
        return [(name, values)]
    if values.dtype.kind in "iuf":
        return _numeric(name, values.astype(np.float64))
    texts = np.array(["" if v is None or v != v else str(v) for v in values.tolist()], dtype=object)
    for separator in SEPARATORS:
        if sum(separator in text for text in texts) >= 0.05 * max(len(texts), 1):
            lists = [{part.strip() for part in text.split(separator)} for text in texts.tolist()]
            found = sorted(set().union(*lists) - {""})
            return [(f"{value}", np.array([value in own for own in lists])) for value in found[:MOST_VALUES]]
    different = sorted(set(texts.tolist()) - {""})
    if not 2 <= len(different) <= MOST_VALUES:
        return []
    plain = all(
        not re.fullmatch(r"[\W\d]+|.", value) for value in different
    )  # "M" needs its column's name, "student" not
    return [(value if plain else f"{name} {value}", texts == value) for value in different]


def _numeric(name: str, values: AnyArray) -> list[tuple[str, Bools]]:
    known = np.isfinite(values)
    different = np.unique(values[known])
    if len(different) < 2:
        return []
    if set(different.tolist()) <= {0.0, 1.0}:
        return [(name, values == 1)]
    whole = bool((different == np.floor(different)).all())
    if whole and different[0] >= 1700 and different[-1] <= 2100 and different[-1] - different[0] >= 20:
        decades = np.floor(values / 10) * 10
        return [(f"{int(d)}s", decades == d) for d in np.unique(decades[known]).tolist()]
    if len(different) <= PARTS:
        return [(f"{name} {value:g}", values == value) for value in different.tolist()]
    edges = np.unique(np.quantile(values[known], np.linspace(0, 1, PARTS + 1)[1:-1]))
    part = np.searchsorted(edges, values, side="right")
    found = []
    for p in range(len(edges) + 1):
        inside = known & (part == p)
        if inside.any():
            low, high = values[inside].min(), values[inside].max()
            found.append((f"{name} {low:g}–{high:g}" if high > low else f"{name} {low:g}", inside))
    return found


def facts_of(properties: Properties, members: Sequence[Ints]) -> list[tuple[Fact, ...]]:
    """For every cluster the properties that its members have more often: q ≤ .05 and log-odds above .3, best first.

    Hypergeometric tests of all clusters and all properties together, by Benjamini and Hochberg.
    """
    flags = properties.flags[properties.known]
    n, k = flags.shape
    if k == 0 or n == 0:
        return [() for _ in members]
    where = np.cumsum(properties.known) - 1
    inside = np.zeros((len(members), k))
    size = np.zeros((len(members), 1))
    for number, own in enumerate(members):
        rows = where[own[properties.known[own]]]
        inside[number], size[number] = flags[rows].sum(axis=0), len(rows)
    total = flags.sum(axis=0)
    from scipy.stats import false_discovery_control, hypergeom  # loaded where a side table is read

    chance = hypergeom.sf(inside - 1, n, total[None], size)
    q = false_discovery_control(np.clip(chance.ravel(), 0.0, 1.0)).reshape(chance.shape)
    outside, rest = total - inside, n - size
    odds = np.log((inside + 0.5) / (size - inside + 0.5)) - np.log((outside + 0.5) / (rest - outside + 0.5))
    share, other = inside / np.maximum(size, 1), outside / np.maximum(rest, 1)
    worth = xlogy(share, share / np.maximum(total / n, 1e-12))
    found = []
    for c in range(len(members)):
        good = [j for j in np.argsort(-worth[c], kind="stable").tolist() if q[c, j] <= RATE and odds[c, j] > LEAST_ODDS]
        found.append(
            tuple(
                Fact(properties.texts[j], float(share[c, j]), float(other[c, j]), float(q[c, j])) for j in good[:MOST]
            )
        )
    return found
