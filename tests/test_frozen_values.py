"""Frozen values stay true: what `replace` makes shares nothing that was worked out from the old fields."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np

import gingham
from gingham.cells import Quadratic
from gingham.core.problem import Problem
from gingham.fitting.projection import Projection
from gingham.fitting.starts import random
from problems import random_problem, random_sample


def frozen_classes() -> list[type]:
    """Every frozen dataclass of the library, found by walking its modules."""
    modules = []
    for found in pkgutil.walk_packages(gingham.__path__, "gingham."):
        if not found.name.endswith("__main__"):
            try:
                modules.append(importlib.import_module(found.name))
            except ModuleNotFoundError as missing:  # kernels for a GPU, where its library is not installed
                if missing.name not in ("torch", "triton"):
                    raise
    every = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    own = [kind for kind in every if is_dataclass(kind) and kind.__module__.startswith("gingham")]
    return [kind for kind in own if kind.__dataclass_params__.frozen]


def test_other_weights_have_other_layouts():
    sample = random_sample(np.random.default_rng(0), 2, 60)
    features = Quadratic().features
    before = sample.rows(0, features)
    weights = np.random.default_rng(1).random(sample.n_rows)
    heavy = replace(sample, weights=weights)
    rows = heavy.rows(0, features)
    assert rows is not before
    np.testing.assert_allclose(np.sort(rows.weights), np.sort(weights))
    assert sample.rows(0, features) is before


def test_a_fit_to_replaced_weights_is_the_fit_to_these_weights():
    rng = np.random.default_rng(0)
    sample = random_sample(rng, 2, 200, 8)
    cell = Quadratic()
    weights = rng.integers(1, 9, sample.n_rows).astype(float)
    Problem.grid(sample, cell, 1.0).objective(random(Problem.grid(sample, cell, 1.0), (2, 2), rng))  # layouts are made
    fresh = sample.take(np.arange(sample.n_rows))
    totals = []
    for weighted in (replace(sample, weights=weights), replace(fresh, weights=weights)):
        problem = Problem.grid(weighted, cell, 1.0)
        start = random(problem, (2, 2), np.random.default_rng(3))
        totals.append(Projection(max_iter=5).solve(problem, start).objective.total)
    assert totals[0] == totals[1]


def test_other_memberships_have_other_sums():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, Quadratic(), 2)
    posterior = random(problem, (3, 2), rng)
    known = posterior.with_sums({"mass": posterior.mass, "information": posterior.information})
    turned = replace(known, assign=tuple(q[:, ::-1] for q in known.assign))
    for old, new in zip(known.mass, turned.mass):
        np.testing.assert_allclose(new, old[::-1])
    assert replace(known, answers=known.answers).known_sums == {}
    assert set(known.known_sums) == {"mass", "information"}


def test_what_is_worked_out_is_never_an_argument():
    """A private field is a cache: `replace` must begin it anew, so it is no argument of the class."""
    carried = [
        f"{kind.__module__}.{kind.__name__}.{field.name}"
        for kind in frozen_classes()
        for field in fields(kind)
        if field.name.startswith("_") and field.init
    ]
    assert carried == []
    assert len(frozen_classes()) > 50


def test_nothing_writes_into_another_values_dictionary():
    wrong = []
    for path in sorted(Path(gingham.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            if stored and isinstance(node.value, ast.Attribute) and node.value.attr == "__dict__":
                wrong.append(f"{path.name}:{node.lineno}")
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update"
            if called and isinstance(node.func.value, ast.Call) and ast.unparse(node.func.value.func) == "vars":
                wrong.append(f"{path.name}:{node.lineno}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__":
                wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == []
