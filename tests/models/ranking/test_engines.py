"""A ranking is the same wherever sums over its users are computed: in memory, in files, on a dask cluster."""

import contextlib
import os
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.data import sources
from gingham.fitting.checkpoints import kept_in
from gingham.models.ranking import baskets as blocks
from gingham.models.ranking import fit as choosing
from gingham.models.ranking.kernels import solve_rows

MODEL = gg.BasketRanker(n_boards=2, n_factors=8, random_state=0)


def table(n_rows=2500, refused=False):
    """Users with a taste each; the last rows, if wanted, are refused."""
    rng = np.random.default_rng(1)
    user, item = rng.integers(0, 150, n_rows), rng.integers(0, 20, n_rows)
    item = np.where(rng.random(n_rows) < 0.8, 2 * item + user % 2, rng.integers(0, 40, n_rows))
    frame = pd.DataFrame({"user": [f"u{u:03d}" for u in user], "item": item, "degree": np.ones(n_rows)})
    if refused:
        frame.loc[n_rows - 200 :, "degree"] = -2.0
    return frame


def answers(model):
    users = np.repeat(model.users_[:30], len(model.items_))
    return model.scores(users, np.tile(model.items_, 30))


@pytest.fixture(scope="module")
def memory():
    return clone(MODEL).fit(table()[["user", "item"]])


def assert_same(found, expected):
    np.testing.assert_array_equal(found.users_, expected.users_)
    np.testing.assert_array_equal(found.items_, expected.items_)
    assert found.selection_["settings"] == expected.selection_["settings"]
    np.testing.assert_array_equal(found.baskets_.taken.toarray(), expected.baskets_.taken.toarray())
    np.testing.assert_allclose(answers(found), answers(expected), rtol=1e-9, atol=1e-9)
    assert found.group_names_ == expected.group_names_


def test_blocks_of_users_change_no_bit(memory, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 400)
    monkeypatch.setattr(blocks, "TABLE", 500)
    found = clone(MODEL).fit(table()[["user", "item"]])
    np.testing.assert_array_equal(answers(found), answers(memory))
    assert found.engine_ == "cores"
    assert len(list(found.baskets_.blocks)) > 3


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # files without a name close themselves
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_table_in_files_is_ranked_as_in_memory(refused, tmp_path, monkeypatch):
    frame = table(refused=refused)
    frame.to_parquet(tmp_path / "pairs.parquet")
    expected = clone(MODEL).fit(frame[["user", "item"]], sample_weight=frame["degree"])
    monkeypatch.setattr(sources, "ROW", 2**62)  # no machine has as much memory for a row
    monkeypatch.setattr(blocks, "BLOCK", 400)
    found = clone(MODEL).fit(tmp_path / "pairs.parquet", sample_weight="degree")
    assert found.engine_ == "files"
    assert_same(found, expected)
    found.save(tmp_path / "model.gingham")
    loaded = gg.load(tmp_path / "model.gingham")
    assert loaded.engine_ == "files"
    np.testing.assert_array_equal(answers(loaded), answers(found))


def test_arrays_at_odd_addresses_change_no_bit():
    rng = np.random.default_rng(0)
    baskets = blocks.Baskets.of(rng.integers(0, 50, 500), rng.integers(0, 30, 500), (50, 30))
    items, start = rng.standard_normal((30, 8)).astype(np.float32), np.zeros((50, 8), np.float32)
    odd = np.frombuffer(b"x" + items.tobytes(), np.uint8)[1:].view(np.float32).reshape(items.shape)
    assert not odd.flags.aligned
    solved = [solve_rows(baskets.taken, other, 60.0, 10.0, start, 3) for other in (items, odd)]
    np.testing.assert_array_equal(*solved)


def test_a_fit_goes_on_with_what_was_chosen(memory, tmp_path, monkeypatch):
    frame = table()[["user", "item"]]

    class LostError(Exception):
        pass

    def lost(*_arguments):
        raise LostError

    with monkeypatch.context() as patch:
        patch.setattr(choosing, "fit_board", lost)  # after the choice and the factors
        with (
            kept_in(tmp_path / "kept", "fit", False, every=0.0) as (checkpoint, _),
            contextlib.suppress(LostError),
        ):
            clone(MODEL).fit(frame, checkpoint=checkpoint)
    with monkeypatch.context() as patch:
        patch.setattr(choosing, "fit_factors", lost)  # they are not made again
        with kept_in(tmp_path / "kept", "fit", True, every=0.0) as (checkpoint, known):
            assert known is not None
            found = clone(MODEL).fit(frame, checkpoint=checkpoint)
    np.testing.assert_array_equal(answers(found), answers(memory))


# on a dask cluster

try:
    import dask.dataframe as dd
    from dask import delayed
    from distributed import Client, LocalCluster
except ImportError:
    Client = None

needs_dask = pytest.mark.skipif(Client is None, reason="dask is not installed")
quiet = pytest.mark.filterwarnings("ignore")  # dask's own


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as local:
        yield local


@needs_dask
@quiet
def test_a_cluster_ranks_as_one_machine(cluster):
    frame = table(refused=True)
    expected = clone(MODEL).fit(frame[["user", "item"]], frame["degree"])
    with Client(cluster):
        found = clone(MODEL).fit(dd.from_pandas(frame, npartitions=3), "degree")
    assert found.engine_ == "dask"
    assert found.feature_names_in_.tolist() == ["user", "item"]
    assert_same(found, expected)


@needs_dask
@quiet
def test_a_killed_worker_changes_nothing(cluster, memory, monkeypatch):
    from gingham.models.ranking import scattered

    frame, submit, halves = table()[["user", "item"]], scattered.submit, []

    def killing(client, call, *arguments):
        halves.append(call is scattered.solve_rows)
        if halves[-1] and sum(halves) == 8:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return submit(client, call, *arguments)

    monkeypatch.setattr(scattered, "submit", killing)
    by_user = frame["user"].str[1:].astype(int) % 3
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        found = clone(MODEL).fit([delayed(frame[by_user == k]) for k in range(3)])
    assert sum(halves) > 8
    assert_same(found, memory)


@needs_dask
@quiet
def test_a_lost_client_and_cluster_cost_no_choice(cluster, memory, tmp_path, monkeypatch):
    from gingham.models.ranking import estimator

    frame = table()[["user", "item"]]
    by_user = frame["user"].str[1:].astype(int) % 2

    class LostError(Exception):
        pass

    def lost(*_arguments):
        raise LostError

    def fit(resume):
        with kept_in(tmp_path / "kept", "fit", resume, every=0.0) as (checkpoint, _):
            return clone(MODEL).fit([delayed(frame[by_user == k]) for k in range(2)], checkpoint=checkpoint)

    own = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False)
    with monkeypatch.context() as patch, Client(own), contextlib.suppress(LostError):
        patch.setattr(estimator, "fit_ranking", lost)
        fit(False)
    own.close()  # scheduler and workers are gone with all that they held
    with monkeypatch.context() as patch, Client(cluster):
        patch.setattr(choosing, "Probe", lost)  # nothing is chosen again
        found = fit(True)
    assert_same(found, memory)


@needs_dask
@quiet
def test_partitions_that_share_users_get_a_sentence(cluster):
    frame = table()[["user", "item"]]
    with Client(cluster):
        with pytest.raises(gg.GinghamError, match="share items of the first axis 'user'"):
            clone(MODEL).fit([delayed(frame[:700]), delayed(frame[700:])])
        with pytest.raises(gg.GinghamError, match="needs pairs"):
            clone(MODEL).fit(dd.from_pandas(frame.assign(month=1), npartitions=2))
