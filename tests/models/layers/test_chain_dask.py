"""A chain over parts makes the draws of a chain in memory, however users are parted and whatever is lost."""

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from gingham.engine.actors import Actor
from gingham.models.layers import chain_dask
from gingham.models.layers.chain import Chain, Layout, padded
from gingham.models.layers.chain_dask import DaskChain, DaskLayout, PartRows, skip, uniforms
from gingham.models.layers.problem import Basket, LayerPlan, first_state
from models.layers import reference
from models.layers.test_chain import tiny


class Here:
    """An actor in this process; what it is asked for is done when the result is."""

    def __init__(self, part):
        self.actor, self.lost_in = Actor(PartRows, part), None

    def run(self, steps):
        @dataclass
        class Later:
            result: object

        if self.lost_in is not None:
            self.lost_in -= 1
            if self.lost_in < 0:
                raise OSError("Unable to contact Actor's worker")
        result = self.actor.run_here(steps)
        return Later(lambda: result)


def part_of(problem, first, last):
    """The rows of the users first:last, as they are numbered there."""
    rows = (first <= problem.codes[0]) & (problem.codes[0] < last)
    codes = problem.codes[:, rows].copy()
    codes[0] -= first
    sizes = (last - first, *problem.n_items[1:])
    baskets = []
    for at, basket in enumerate(problem.baskets):
        layer = next(layer for layer in problem.layers if layer.basket == at)
        if layer.kind == "item":
            baskets.append(Basket.itself(sizes[layer.source]))
        elif layer.kind == "basket":
            pair = [codes[layer.source], codes[layer.target]]
            baskets.append(Basket.of_pairs(*pair, sizes[layer.source], sizes[layer.target]))
        elif layer.source == 0:
            mine = (first <= basket.sources) & (basket.sources < last)
            baskets.append(
                Basket.of_pairs(basket.sources[mine] - first, basket.tokens[mine], last - first, basket.n_tokens)
            )
        else:
            baskets.append(basket)
    return replace(problem.take(rows), n_items=sizes, codes=codes, baskets=tuple(baskets))


def in_parts(problem, cuts):
    """The layout of a problem whose users are parted at some places, with the actors that were started."""
    parts = [part_of(problem, first, last) for first, last in pairwise(cuts)]
    begun = []

    def start():
        begun.append([Here(part) for part in parts])
        return begun[-1]

    rows = np.concatenate([[0], np.cumsum([part.n_rows for part in parts])])
    widths = tuple(padded(layer.n_target_clusters) for layer in problem.layers)
    return DaskLayout(start, widths, rows, np.array(cuts)), begun


def with_more(problem):
    """Side information of users and an item layer from users to items beside what there is."""
    n = problem.n_items
    baskets = (*problem.baskets, Basket.of_pairs(np.array([0, 1, 1, 3]), np.array([0, 0, 2, 1]), n[0], 3))
    more = (LayerPlan("side information", 0, 1, len(problem.baskets), 2, 3, False),)
    if problem.n_modes == 2:
        baskets = (*baskets, Basket.itself(n[1]))
        more = (*more, LayerPlan("item", 1, 0, len(baskets) - 1, 2, 3, False))
    return replace(problem, baskets=baskets, layers=(*problem.layers, *more))


def states_agree(state, expected, exactly=False):
    for one, two in zip((*state.targets, *state.tokens), (*expected.targets, *expected.tokens)):
        np.testing.assert_array_equal(one, two)
    near = 0 if exactly else 1e-5
    for one, two in zip((*state.cells, *state.offsets), (*expected.cells, *expected.offsets)):
        np.testing.assert_allclose(one, two, atol=near, rtol=0)
    np.testing.assert_allclose(state.cuts, expected.cuts, atol=near / 10, rtol=0)
    assert state.mean == pytest.approx(expected.mean, abs=near, rel=0)


CASES = [{}, {"ordinal": False}, {"weights": True}, {"m": (5, 6)}, {"modes": 3}, {"labels": 2}]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("cuts", [(0, 5), (0, 2, 5), (0, 1, 2, 4, 5)], ids=str)
def test_draws_over_parts_move_in_lockstep_with_the_reference(case, cuts, monkeypatch):
    monkeypatch.setattr(chain_dask, "TOKENS", (3, 3))  # items are drawn in two groups
    problem = with_more(tiny(time=False, rows=14, **case))
    state = first_state(problem, 0.7, np.random.default_rng(1))
    layout, _ = in_parts(problem, cuts)
    generators = np.random.default_rng(2), np.random.default_rng(2)
    chain = DaskChain(problem, deepcopy(state), generators[1], layout)
    held = np.arange(problem.n_rows) % 3 == 0
    for number in range(12):
        if number in (4, 6):
            chain.leave_out(held if number == 4 else None)
        counted = replace(problem, weights=np.where(held, 0.0, problem.counts)) if 4 <= number < 6 else problem
        reference.sweep(counted, state, generators[0])
        chain.sweep()
        states_agree(chain.draw(), state)
        left = state.latent - reference.effect(problem, state)
        if counted is not problem:
            np.testing.assert_allclose(chain.effects(), (state.latent - left)[held], atol=2e-5)
    kept = chain._to_file()
    np.testing.assert_allclose(kept["state"]["latent"], state.latent, atol=1e-5)
    np.testing.assert_allclose(kept["residual"], left, atol=1e-5)


def larger():
    return with_more(tiny(n=(60, 200), rows=1500, time=False, weights=True))


def test_a_chain_over_parts_is_that_in_memory_up_to_rounding():
    problem = larger()
    state = first_state(problem, 0.7, np.random.default_rng(1))
    memory = Chain(problem, deepcopy(state), np.random.default_rng(2), Layout.of(problem))
    chains = [
        DaskChain(problem, deepcopy(state), np.random.default_rng(2), in_parts(problem, cuts)[0])
        for cuts in ((0, 60), (0, 7, 8, 41, 60))
    ]
    for _ in range(8):
        for chain in (memory, *chains):
            chain.sweep(adapt=True)
    assert memory.state.baskets_enabled
    for chain in chains:
        states_agree(chain.draw(), memory.state)
    states_agree(chains[0].draw(), chains[1].draw())


@pytest.mark.parametrize("lost_in", [0, 1, 17, 40])
@pytest.mark.parametrize("kept", [False, True])
def test_a_lost_part_changes_nothing(lost_in, kept):
    problem = larger()
    state = replace(first_state(problem, 0.7, np.random.default_rng(1)), baskets_enabled=True)
    held = np.arange(problem.n_rows) % 10 == 0

    def run(lost_in):
        layout, begun = in_parts(problem, (0, 20, 45, 60))
        chain = DaskChain(problem, deepcopy(state), np.random.default_rng(2), layout)
        mine = chain.state  # as whoever sets the noise between sweeps holds it
        chain.leave_out(held)
        seen = []
        for number in range(6):
            if number == 4 and lost_in is not None:
                begun[-1][1].lost_in = lost_in
            mine.noise = 0.9 - 0.1 * number
            chain.sweep(adapt=True)
            if number == 2 and kept:
                chain._to_file()
            seen.append(chain.effects())
        return chain.draw(), seen, len(begun)

    (expected, effects, n), (found, again, more) = run(None), run(lost_in)
    assert (n, more) == (1, 2)
    states_agree(found, expected, exactly=True)
    np.testing.assert_array_equal(effects, again)


def test_a_chain_over_parts_goes_on_from_a_checkpoint():
    problem = larger()
    layouts = [in_parts(problem, cuts)[0] for cuts in ((0, 20, 45, 60), (0, 31, 60))]

    def begun(layout):
        rng = np.random.default_rng(1)
        chain = layout.begin(problem, first_state(problem, 0.7, rng), rng)
        chain.leave_out(np.arange(problem.n_rows) % 9 == 0)
        return chain

    one, two, three = begun(layouts[0]), begun(layouts[0]), begun(layouts[1])  # the last one with other parts
    for _ in range(5):
        one.sweep()
    kept = one._to_file()
    for other in (two, three):
        other.sweep()  # somewhere else
        other.restore(deepcopy(kept))
    for chain in (one, two, three):
        for _ in range(3):
            chain.sweep()
    states_agree(two.draw(), one.draw(), exactly=True)
    states_agree(three.draw(), one.draw())


def test_numbers_that_are_skipped_are_those_that_would_have_been_drawn():
    for before in (0, 1, 4, 7):
        for first, n in ((0, 5), (1, 4), (2, 3), (6, 9), (7, 0)):
            rng, other = np.random.default_rng(3), np.random.default_rng(3)
            for one in (rng, other):
                one.random(before, dtype=np.float32)
            stream = deepcopy(rng)
            every = other.random(first + n, dtype=np.float32)
            np.testing.assert_array_equal(uniforms(stream, first, n), every[first:])
            skip(rng, first + n)
            assert rng.bit_generator.state["state"] == other.bit_generator.state["state"]
            np.testing.assert_array_equal(rng.random(3, dtype=np.float32), other.random(3, dtype=np.float32))
