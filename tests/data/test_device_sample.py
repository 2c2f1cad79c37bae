"""Observations on a device (here torch on the CPU) are numbered, merged and summed as on the host."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from gingham.data import Alphabet, Mode, Moments, OneHot, Sample  # noqa: E402
from gingham.data.device_sample import DeviceSample, segment_sums  # noqa: E402
from gingham.errors import GinghamError  # noqa: E402
from problems import FIVE  # noqa: E402


def columns(kind: str, n: int = 300) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    ids = [rng.integers(-3, 9, n), 7 * rng.integers(0, 5, n)]
    if kind == "far apart":
        ids = [ids[0] * 10**12, ids[1] * 10**15]
    if kind == "unsigned":
        ids = [(ids[0] + 3).astype(np.uint32), ids[1].astype(np.uint8)]
    if kind == "strided":
        return list(np.column_stack(ids).T)
    if kind == "backwards":
        ids = [column[::-1] for column in ids]
    return [column.astype(str) for column in ids] if kind == "names" else ids


KINDS = ["near", "far apart", "unsigned", "strided", "backwards", "names"]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_get_the_same_codes(kind: str) -> None:
    ids = columns(kind)
    host, device = (sample.of(ids, np.ones(300)) for sample in (Sample, DeviceSample))
    for mode, other, codes, tensor in zip(host.modes, device.modes, host.codes, device.codes):
        np.testing.assert_array_equal(mode.items, other.items)
        assert mode.items.dtype == other.items.dtype
        np.testing.assert_array_equal(codes, tensor.numpy())
        asked = np.concatenate([ids[0][:9], ids[1][:9]])  # of both columns, so that some are not known
        (moved,) = DeviceSample.brought([asked])
        np.testing.assert_array_equal(mode.encode(asked), DeviceSample.encoded(mode, moved).numpy())
    back = device.in_arrays()
    np.testing.assert_array_equal(back.labels, host.labels)
    with pytest.raises(GinghamError, match="row 0: this id is unknown"):
        DeviceSample.of(ids[::-1], modes=[Mode("a", ids[0][:0]), Mode("b", ids[1][:0])])


@pytest.mark.parametrize("labels", ["whole", "real", "names"])
def test_labels_get_the_same_codes(labels: str) -> None:
    y = np.random.default_rng(1).integers(1, 6, 300)
    y = {"whole": y, "real": y.astype(np.float32), "names": np.array(list("abcdef"))[y]}[labels]
    label_values = Alphabet.of(np.unique(y), given=True)
    host, device = (sample.of(columns("near"), y, alphabet=label_values) for sample in (Sample, DeviceSample))
    np.testing.assert_array_equal(host.label_codes, device.label_codes.numpy())
    np.testing.assert_array_equal(host.numbers(), device.numbers().numpy())
    assert device.labels is None
    wrong = y.copy()
    wrong[17] = "g" if labels == "names" else 9
    said = []
    for sample in (Sample, DeviceSample):
        with pytest.raises(GinghamError, match="row 17 is not in the alphabet") as error:
            sample.of(columns("near"), wrong, alphabet=label_values)
        said.append(str(error.value).split("in row")[1])
    assert said[0] == said[1]


def samples(coded: bool = True, weighted: bool = True, d: int = 2) -> tuple[Sample, DeviceSample]:
    rng = np.random.default_rng(2)
    ids = [rng.integers(0, 4 + j, 200) for j in range(d)]
    y = rng.integers(1, 6, 200).astype(float)
    weights = rng.integers(1, 4, 200).astype(float) if weighted else None
    host = Sample.of(ids, y, weights, alphabet=FIVE if coded else None)
    return host, host.placed()


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sums_are_the_same(coded: bool, weighted: bool, d: int) -> None:
    host, device = samples(coded, weighted, d)
    rng = np.random.default_rng(3)
    assert (device.n_observations, device.shape, device.n_rows) == (host.n_observations, host.shape, host.n_rows)
    features = OneHot(5) if coded else Moments(2)
    here, there = host.sums(features), device.sums(features)
    assigns = [rng.random((n, 3)) for n in host.shape]
    np.testing.assert_allclose(there.table(assigns), here.table(assigns), rtol=1e-12)
    for axis in range(d):
        others = [q for j, q in enumerate(assigns) if j != axis]
        coef = rng.random((2, features.size * 3 ** (d - 1)))
        np.testing.assert_allclose(there.project(axis, others, coef).numpy(), here.project(axis, others, coef))
        np.testing.assert_array_equal(device.counts(axis), host.counts(axis))
    assert there.squares() == pytest.approx(here.squares())
    items = rng.integers(0, host.shape[0], 40)
    places = rng.random(40) * host.counts(0)[items]
    np.testing.assert_array_equal(there.drawn(items, places), here.drawn(items, places))


@pytest.mark.parametrize("coded", [True, False])
def test_parts_and_merged_tuples_are_the_same(coded: bool) -> None:
    host, device = samples(coded)
    mask = np.random.default_rng(4).random(200) < 0.5
    for one, other in ((host.take(mask), device.take(mask)), (host.merged(), device.merged())):
        back = other.in_arrays()
        assert back.n_rows == one.n_rows < 200
        for a, b in zip((*one.codes, one.labels, one.weights), (*back.codes, back.labels, back.weights)):
            np.testing.assert_array_equal(a, b)
    assert device.has_counts
    assert not DeviceSample.of(columns("near"), np.ones(300), np.full(300, 0.5)).has_counts


def test_sums_by_code_are_those_of_bincount() -> None:
    rng = np.random.default_rng(5)
    codes, values = rng.integers(0, 7, 100), rng.random((2, 100))
    found = segment_sums(torch.from_numpy(codes), [torch.from_numpy(v) for v in values], 9).numpy()
    np.testing.assert_allclose(found, np.stack([np.bincount(codes, v, minlength=9) for v in values], axis=1))
