"""Trees and shared tables from the command line, to a report and a picture."""

import json

import numpy as np
import pytest

import gingham as gg
from gingham.cli.app import run
from gingham.datasets.planted import make_tree
from model_kinds import write_tables


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def tree_table(tmp_path_factory):
    data = make_tree(1500, n_items=12, n_clusters=3, n_inner=2, n_labels=3, random_state=0)
    path = tmp_path_factory.mktemp("tree") / "table.csv"
    rows = [",".join(map(str, (*x, y))) for x, y in zip(data.X, data.y)]
    path.write_text("\n".join(["a,b,c,d,y", *rows]) + "\n")
    return path


def test_tree_fit_predict_certify_report(tree_table, tmp_path, capsys):
    model = tmp_path / "m.gingham"
    fit = ["fit", str(tree_table), "--model", "tree", "--axes", "a,b,c,d", "--label", "y", "--alphabet", "0..2"]
    fit += ["--loss", "zero-one", "--beta", "2", "--clusters", "3", "--out", str(model), "--json"]
    assert run([*fit, "--merges", "0,1,2;2,3,2"]) == 0
    assert gg.load(model).merges_ == ((0, 1, 2), (2, 3, 2))
    assert run(["predict", str(model), str(tree_table), "--out", str(tmp_path / "p.csv")]) == 0
    capsys.readouterr()
    assert run(["certify", str(model), str(tree_table), "--json", "--no-progressive"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["training_rows"]["value"] < 1
    assert run(["report", str(model), str(tree_table), "--out", str(tmp_path / "r.html"), "--no-progressive"]) == 0
    assert "a · b" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert run([*fit, "--merges", "one"]) == 2


def test_joint_fit_predict_certify(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (300, 2))
    lines = [f"v{v},m{m},{5 if (v + m) % 2 else 1}" for v, m in X]
    (tmp_path / "ratings.csv").write_text("\n".join(["viewer,movie,stars", *lines]) + "\n")
    genres = [f"m{m},{g},{int(m % 2 == 0)}" for m in range(12) for g in ("war", "love")]
    (tmp_path / "genres.csv").write_text("\n".join(["movie,genre,has", *genres]) + "\n")
    ratings = str(tmp_path / "ratings.csv")
    tables = [ratings, "--model", "joint", "--axes", "viewer,movie", "--label", "stars", "--holdout", "0", "-q"]
    relation = ["-r", f"movie,genre=has:{tmp_path / 'genres.csv'}"]
    model = str(tmp_path / "m.gingham")
    assert run(["fit", *tables, *relation, "--clusters", "viewer=2,movie=2,genre=none", "--out", model]) == 0
    (tmp_path / "new.csv").write_text("viewer,movie\nv0,m10\nv0,m11\n")  # movies without ratings
    out = tmp_path / "p.csv"
    assert run(["predict", model, str(tmp_path / "new.csv"), "--axes", "viewer,movie", "-o", str(out)]) == 0
    predicted = [float(line.split(",")[-1]) for line in out.read_text().splitlines()[1:]]
    assert predicted[0] < 2 < 4 < predicted[1]
    capsys.readouterr()
    assert run(["certify", model, ratings]) == 2  # labels were read off the data
    assert "fit with --alphabet" in capsys.readouterr().err.replace("\n", " ")
    assert run(["certify", model, ratings, "--alphabet", "1,5"]) == 0
    assert run(["fit", *tables, "-r", "viewer,movie", "--clusters", "viewer=2"]) == 2
    assert run(["fit", *tables, *relation, "--clusters", "viewer:2"]) == 2
    assert run(["fit", str(out), "--model", "joint", "--axes", "viewer,movie"]) == 2


def test_items_with_few_tuples_are_placed_anew(tmp_path, cases):
    out = tmp_path / "m.gingham"
    assert run(cases["joint"].fit(out, "--cold-start")) == 0
    assert gg.load(out).cold_start is True


def test_pictures_of_a_tree_and_of_a_relation(tree_table):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    from gingham import plots

    data = make_tree(800, n_items=10, n_clusters=3, n_inner=2, n_labels=3, random_state=0)
    model = gg.TreeCoClustering(3, ((0, 1, 2), (2, 3, 2)), n_init=1, random_state=0).fit(data.X, data.y)
    ax = plots.tree(model.posterior_)
    assert "2 × 2 cells" in [text.get_text() for text in ax.texts]
    board = plots.checkerboard(model.posterior_, model.sample(data.X, data.y))
    assert board.get_ylabel() == "x0 · x1" or "·" in board.get_ylabel()
    joint = gg.JointCoClustering({"a": 2, "b": 2}, random_state=0).fit({("a", "b"): (data.X[:, :2], data.y)})
    plots.checkerboard(joint.posterior_, joint.sample(("a", "b"), data.X[:, :2], data.y))
    with pytest.raises(gg.GinghamError, match="checkerboard"):
        plots.tree(joint.posterior_)
    plt.close("all")
