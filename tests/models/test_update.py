"""Updates: groups keep numbers and names; changes are proven where they were planted, and not where nothing changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gingham as gg

N, M, K = 60, 40, 3


def rows(group, column, seed, n=5000):
    rng = np.random.default_rng(seed)
    u, i = rng.integers(0, N, n), rng.integers(0, M, n)
    high = rng.random(n) < np.where(group[u] == column[i], 0.85, 0.15)
    return np.column_stack([u, i]), np.where(high, 5.0, 1.0)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    return rng.permutation(np.arange(N) % K), rng.permutation(np.arange(M) % K)


def shown(model, side=0):
    summary = model.summary_
    return dict(zip(summary.sides[side].items.tolist(), summary.sides[side].labels(summary.size[side]).tolist()))


def test_nothing_is_proven_of_rows_from_the_same_source(planted):
    model = gg.CoClusteringRegressor(random_state=0).fit(*rows(*planted, 1))
    before, names = shown(model), [one.name for one in model.summary_.sides[0].cut(model.summary_.size[0])]
    model.update(*rows(*planted, 2))
    assert model.changes_.proven == ()
    assert shown(model) == before
    assert [one.name for one in model.summary_.sides[0].cut(model.summary_.size[0])] == names


def test_planted_movers_are_proven(planted):
    group, column = planted
    model = gg.CoClusteringRegressor(random_state=0).fit(*rows(group, column, 1))
    after = group.copy()
    after[:3] = (after[:3] + 1) % K
    model.update(*rows(after, column, 2))
    movers = {one.positions[0] for one in model.changes_.proven if one.kind == "moved" and one.side == "0"}
    movers = movers or {one.positions[0] for one in model.changes_.proven if one.kind == "moved"}
    assert {0, 1, 2} <= movers
    assert len(movers) <= 4
    assert model.changes_.to_frame("pandas").shape[0] >= 3
    assert "moved from" in str(model.changes_)


@pytest.mark.parametrize("change", ["order", "names"])
def test_identities_do_not_depend_on_order_or_names(planted, change):
    (X, y), (more, z) = rows(*planted, 1), rows(*planted, 2)
    rng = np.random.default_rng(3)
    plain = gg.CoClusteringRegressor(random_state=0).fit(X, y)
    first = shown(plain)
    plain.update(more, z)
    if change == "order":
        at = rng.permutation(len(X))
        other, back = gg.CoClusteringRegressor(random_state=0).fit(X[at], y[at]), np.arange(N)
    else:
        back = rng.permutation(N) + 100
        X, more = (np.column_stack([back[part[:, 0]], part[:, 1]]) for part in (X, more))
        other = gg.CoClusteringRegressor(random_state=0).fit(X, y)
    mine = shown(other)
    other.update(more, z)
    assert shown(other) == mine  # nobody changes the number
    pairs = {(first[u], mine[int(back[u])]) for u in range(N)}
    assert len(pairs) == len(set(first.values()))  # the same groups, whatever their numbers
    assert other.changes_.proven == ()


def test_a_loaded_model_is_updated_with_the_rows_of_its_fit(planted, tmp_path):
    X, y = rows(*planted, 1)
    model = gg.CoClusteringRegressor(random_state=0).fit(X, y)
    groups = shown(model)
    model.save(tmp_path / "m.gingham")
    again = gg.load(tmp_path / "m.gingham")
    with pytest.raises(gg.GinghamError, match="data="):
        again.update(*rows(*planted, 2))
    again.update(*rows(*planted, 2), data=(X, y))
    assert shown(again) == groups


@pytest.mark.parametrize("kind", ["ranking", "counts", "graph"])
def test_other_families_keep_their_groups(kind):
    rng = np.random.default_rng(0)
    group = np.arange(60) % 2

    def source(seed):
        rng = np.random.default_rng(seed)
        if kind == "counts":
            return rng.poisson(np.where(group[:, None] == group[:40], 4.0, 1.0))
        if kind == "graph":
            chance = np.where(group[:, None] == group, 0.3, 0.03)
            return np.column_stack(np.nonzero(np.triu(rng.random((60, 60)) < chance, 1)))
        u, i = rng.integers(0, 60, 1500), rng.integers(0, 40, 1500)
        kept = (group[u] == group[i]) | (rng.random(1500) < 0.1)
        return pd.DataFrame({"user": u[kept], "item": i[kept]})

    made = {
        "ranking": gg.BasketRanker(n_boards=1, n_groups=2, random_state=0),
        "counts": gg.CoOccurrenceClustering(random_state=0),
        "graph": gg.GraphClustering(random_state=0),
    }[kind]
    side = 1 if kind == "ranking" else 0
    model = made.fit(source(1))
    before = shown(model, side)
    model.update(source(2))
    assert shown(model, side) == before
    assert model.changes_.proven == ()
    assert rng is not None
