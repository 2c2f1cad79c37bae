"""From a model's data and clusters to its summary: trees, a readable size, names, facts, errors beside baselines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.data import Mode
from gingham.errors import AdviceWarning, GinghamError
from gingham.fitting.merging import MergeTree, leaves_below, nodes_left
from gingham.summary.item_tables import ItemInfo, Properties, facts_of, properties_by_side
from gingham.summary.known_columns import best_known
from gingham.summary.names import MARKS, WORDS, WordsOfOthers, best_names, short_titles, telling
from gingham.summary.sizes import LEAVES, SHARES, Trial, held_out, own_clusters, readable_share, sizes_of, tables_of
from gingham.summary.trees import orders, trees_of
from gingham.summary.values import (
    BlockTable,
    Cluster,
    Errors,
    KnownColumns,
    Mark,
    Measure,
    Observed,
    Relation,
    Side,
    Summary,
    counted,
    listed,
    plural,
    shares_of,
)

SHARED = 0.2  # of what its mass would lead one to expect: a cluster that tells less is shared by all
PROFILE = 24  # clusters of the other side over which the profile of an item is kept
WIDE = 2**25  # numbers that the profiles of all items may take; over the readable clusters only, where there are more
FAITHFUL = 1 / 3  # share of the model's gain below which the layers are shown, too
NOTHING = {
    "lift": "how often each of them occurs",
    "difference": "averages",
    "labels": "how common each label is",
}


class Summarizable(Protocol):
    """A fitted model that says what was observed and which clusters it made of it."""

    _errors: Errors | None

    def _observed(self, *data: Any) -> Observed:
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
    summary = summarize_observed(model._observed(*data), item_info, random_state)
    if not data and model._errors is not None:  # by whoever fitted the model
        summary = replace(summary, errors=model._errors)
    for sentence in summary.advice:
        warnings.warn(sentence, AdviceWarning, stacklevel=2)
    return summary


def summarize_observed(observed: Observed, item_info: ItemInfo | None = None, seed: int = 0) -> Summary:
    """The summary of a model from what it hands over: its own clusters, merged along their trees."""
    about = properties_by_side(observed.modes, item_info or {})
    titles = {**observed.titles, **{at: own.titles for at, own in about.items() if own.titles is not None}}
    observed = replace(observed, titles=titles)
    trial = held_out(observed, seed)
    numbers = own_clusters(observed, observed.clusters)
    tables = tables_of(observed, numbers, observed.blocks)
    whole = trees_of(tables, observed.n_sides)
    # More leaves than people can use are merged beforehand. The trees above stay as they are: grown anew, with the
    # other side already merged, they follow the known classes less well.
    into = [tree.groups(min(LEAVES, tree.n_leaves)) for tree in whole]
    leaves = [groups[labels] for groups, labels in zip(into, numbers)]
    trees = [tree.top(LEAVES) for tree in whole]
    tables = [table.coarser(into) for table in tables]
    by_rule, size = sizes_of(observed, trees, tables, trial)
    known = _known(observed, about, trial, size, seed)
    places = orders(trees, tables)
    sides = []
    for at in range(observed.n_sides):
        side = _side(observed, at, places[at], leaves, trees, size, tables, about.get(at), seed)
        soft = _shares(observed, at, numbers[at], into[at])
        sides.append(replace(side, own=numbers[at], fine=into[at], fine_merges=whole[at].merges, shares=soft))
    found = trial is None or trial.curve.found
    shares = () if trial is None else tuple(
        (share, tuple(min(k, tree.n_leaves) for k, tree in zip(trial.curve.keeping(share), trees))) for share in SHARES
    )  # fmt: skip
    relation = observed.relations[0]
    fidelity = None if trial is None or not observed.distilled else _fidelity(trial, size)
    return Summary(
        sides=tuple(sides),
        tables=tuple(tables),
        size=size,
        size_by_rule=by_rule,
        shares=shares,
        rungs=np.zeros((0, observed.n_sides), dtype=np.int64) if trial is None else np.array(trial.curve.sizes),
        curve=np.zeros(0) if trial is None else trial.curve.gains,
        found=found,
        verdict=_verdict(observed, size, found, known),
        why=_why(observed, trees, size, by_rule, trial),
        prediction=observed.prediction,
        errors=None if trial is None else trial.errors,
        fidelity=fidelity,
        distilled=_distilled(relation, fidelity) if observed.distilled and found else "",
        layers=observed.layers(titles) if observed.layers and found and (fidelity or 0) < FAITHFUL else (),
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
        at = curve.at(size)
        gain, error, squares = float(curve.gains[at]), float(curve.errors[at]), trial.squares
    return best_known(observed, {at: own.partitions for at, own in about.items()}, seed, gain, error, squares)


def _shares(observed: Observed, at: int, numbers: Ints, into: Ints) -> Floats | None:
    """Soft memberships of a side in its leaves, from those in the model's clusters; None where each item has one."""
    soft = observed.memberships[at] if observed.memberships else None
    own = observed.clusters[at]
    if soft is None or own is None:
        return None
    own_of = np.full(soft.shape[1], -1, dtype=np.int64)
    own_of[own] = numbers
    return shares_of(soft, own_of, into)


def _fidelity(trial: Trial, size: Sequence[int]) -> float | None:
    """Share of the model's gain that a distilled checkerboard of this size reproduces; None if there is no gain."""
    if trial.model_gain is None or trial.model_gain <= 0:
        return None
    return float(trial.curve.gains[trial.curve.at(size)] / trial.model_gain)


def _side(
    observed: Observed,
    at: int,
    order: Ints,
    clusters: Sequence[Ints],
    trees: Sequence[MergeTree],
    size: Sequence[int],
    tables: Sequence[BlockTable],
    properties: Properties | None,
    seed: int,
) -> Side:
    """A side: its tree, and what is said of every node."""
    mode, leaf, tree, titles = observed.modes[at], clusters[at], trees[at], observed.titles.get(at)
    meeting = next(observed.meetings(at), None)
    if meeting is None:
        raise GinghamError(f"{mode.name!r} occurs in no relation with another side: there is nothing to summarise.")
    pair = meeting[0].pair(*meeting[1:])
    other, measure = pair.sides[1], pair.rule

    def profiles(k: int) -> Floats:
        """Sums of every item over k clusters of the other side."""
        return pair.sums(np.arange(mode.n_items), trees[other].groups(k)[clusters[other]], (mode.n_items, k))

    m = trees[other].n_leaves
    coarse, profile = profiles(size[other]), profiles(min(PROFILE, m))
    wide = profiles(m) if mode.n_items * m * profile.shape[2] <= WIDE else profile
    whole, mass = wide.sum(axis=0), measure.observed(wide).sum(axis=1)
    own_names, other_names = (_texts(observed.modes[side], observed.titles.get(side)) for side in (at, other))
    told_by = WordsOfOthers(pair, (mode.n_items, observed.shape[other]), other_names, seed)
    texts = told_by.texts
    own_telling, other_telling = telling(own_names), telling(other_names) or pair.measure == "labels"
    by_own = own_telling or not other_telling or other == at
    if by_own and not own_telling:
        prefix = f"{mode.name} "  # but for "shop 44" of the side "shop"
        own_names = [name if name.lower().startswith(mode.name.lower()) else prefix + name for name in own_names]
    own_short = short_titles(own_names) if own_telling else own_names
    short = short_titles(texts) if other_telling and pair.measure != "labels" else texts
    members = list(members_of(leaf, leaves_below(tree.merges, tree.n_leaves)))
    facts = [()] * len(members) if properties is None else facts_of(properties, members)
    readable = nodes_left(tree.merges, tree.n_leaves, size[at])
    expected = sum(max(_gain(measure, coarse, members[node]), 0.0) for node in readable)
    strength = np.zeros(mode.n_items)
    found = []
    for node, (mine, own_facts) in enumerate(zip(members, facts)):
        everything = len(mine) == mode.n_items
        inside = wide[mine].sum(axis=0)
        score = (wide[mine] * measure.coefficients(np.stack([inside, whole - inside]))[0]).sum(axis=(1, 2))
        if node < tree.n_leaves and not everything:
            strength[mine] = score
        best = np.argsort(-score, kind="stable")[: 4 * MARKS]
        fair = SHARED * float(mass[mine].sum()) / max(float(mass.sum()), 1e-300)
        shared = not everything and expected > 0 and _gain(measure, coarse, mine) / expected < fair
        told = told_by.of(mine)
        if by_own:
            scores = np.full(mode.n_items, -np.inf)
            scores[mine[best]] = score[best]
            most = WORDS if measure.name == "lift" else WORDS - 1
            words, against, coverage = [own_short[i] for i in best_names(scores, own_names, most)], list[str](), 1.0
        else:
            words, against = [short[i] for i in told.words], [short[i] for i in told.against]
            coverage = told.coverage
        typical = tuple(Mark(own_names[mine[i]], float(score[i]), float(mass[mine[i]])) for i in best[:MARKS].tolist())
        distinctive = () if everything else tuple(Mark(texts[i], s, v) for i, s, v in told.marks)
        found.append(
            Cluster(_name(measure, words, by_own, shared, everything, mode.name), tuple(words), tuple(against),
                    coverage, len(mine), float(mass[mine].sum()), bool(shared), distinctive, typical,
                    () if everything else tuple(own_facts))
        )  # fmt: skip
    total = sum(table.rule.structure(table.sums) for table in tables if at in table.sides)
    heights = tree.losses / total if total > 1e-12 else np.zeros(len(tree.losses))
    return Side(
        mode.name, mode.items, titles, leaf, mass, strength, profile.astype(np.float32), tree.merges, heights, order,
        tuple(found),
    )  # fmt: skip


def _texts(mode: Mode, titles: AnyArray | None) -> list[str]:
    return [str(item) for item in (mode.items if titles is None else titles).tolist()]


def _gain(measure: Measure, profile: Floats, members: Ints) -> float:
    """What a cluster's entries gain by it, over the readable clusters of the other side."""
    inside = profile[members].sum(axis=0)
    rest = profile.sum(axis=0) - inside
    return float((measure.coefficients(np.stack([inside, rest]))[0] * inside).sum())


def _name(measure: Measure, words: Sequence[str], by_own: bool, shared: bool, everything: bool, side: str) -> str:
    if everything:
        return f"all {plural(side)}"
    listed = ", ".join(words)
    if not words:
        return "no distinctive items"
    if measure.name == "difference" and not by_own:
        return "close to the averages" if shared else f"+ {listed}"
    return f"shared: {listed}" if shared else listed


def members_of(leaf: Ints, below: Sequence[Sequence[int]]) -> Iterator[Ints]:
    """The items of every node, from the leaf of each item and the leaves of each node."""
    order = np.argsort(leaf, kind="stable")
    ends = np.cumsum(np.bincount(leaf, minlength=max(max(leaves) for leaves in below) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    for leaves in below:
        yield np.concatenate([order[starts[i] : ends[i]] for i in leaves])


def _verdict(observed: Observed, size: Sequence[int], found: bool, known: KnownColumns | None) -> str:
    relation = observed.relations[0]
    judged = sorted(set(relation.sides))
    names = [observed.modes[side].name for side in judged]
    size = [size[side] for side in judged]
    if not found and known is not None:
        sides = listed([plural(n) for n in names])
        return f"Groups of {sides} by known columns predict held-out observations; no other groups were found."
    if not found:
        return (
            f"No structure was found: on held-out observations, groups of {listed([plural(n) for n in names])} predict "
            f"no better than {NOTHING[relation.measure]}."
        )
    alike = [name for name, k in zip(names, size) if k == 1]
    if alike and len(alike) < len(names):
        return f"All {listed([plural(name) for name in alike])} are alike: the data do not distinguish them."
    shown = listed([f"{counted(k, 'group')} of {plural(name)}" for name, k in zip(names, size)])
    return f"{shown[0].upper()}{shown[1:]}."


def _distilled(relation: Relation, fidelity: float | None) -> str:
    said = (
        "The groups are those of one checkerboard that was distilled from the predictions of the model, which has many "
        "clusterings"
    )
    if fidelity is None:
        return f"{said}."
    return (
        f"{said}: on held-out observations it reproduces {min(fidelity, 1.0):.0%} of what the model gains over "
        f"{'averages' if relation.measure == 'difference' else 'label shares'}."
    )


def _why(
    observed: Observed, trees: Sequence[MergeTree], size: Sequence[int], by_rule: Sequence[int], trial: Trial | None
) -> str:
    shown = " × ".join(str(k) for k in size)
    if trial is None:
        return f"{shown} clusters are those of the model; no observations could be held out to compare sizes."
    curve = trial.curve
    if not curve.found:
        asked = f" The {shown} groups are those that were asked for." if any(observed.given) and max(size) > 1 else ""
        return f"On held-out observations the best grouping gains a negligible amount, or no more than chance.{asked}"
    most = curve.sizes[curve.best]
    best = " × ".join(str(k) for k in most)
    rule = " × ".join(str(k) for k in by_rule)
    least = readable_share(observed)
    at = curve.sizes.index(tuple(by_rule)) if tuple(by_rule) in curve.sizes else None
    kept = least if at is None else float(curve.gains[at] / curve.gains[curve.best])
    if tuple(by_rule) == most:
        said = f"{rule} groups predict held-out observations best"
    else:
        said = f"{rule} groups keep {kept:.0%} of what the best size, {best}, gains on held-out observations"
    if tuple(size) != tuple(by_rule):
        return f"{shown} groups were asked for; {said}."
    if tuple(by_rule) == tuple(tree.n_leaves for tree in trees):
        return f"{said}; they are all clusters of the model."
    return f"{said}; fewer would keep less than {least:.0%}."
