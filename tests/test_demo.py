"""The demo writes its picture, its page, its numbers and its model; here on a few of the digits."""

import importlib.util
import json
from pathlib import Path

import gingham as gg


def test_demo_on_a_few_digits(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", Path(__file__).parents[1] / "examples" / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    digits, truths = demo.load_images()
    assert digits.shape == (1797, 64)
    monkeypatch.setattr(demo, "load_images", lambda: (digits[:120], truths[:120]))
    facts = demo.main(["--out", str(tmp_path / "demo")])
    assert "hidden pixels of 120 digits" in capsys.readouterr().out
    for name in ("digits.png", "report.html", "digits.json", "digits.gingham"):
        assert (tmp_path / "demo" / name).stat().st_size > 300
    stored = json.loads((tmp_path / "demo" / "digits.json").read_text())
    assert stored["predictors"] == facts["predictors"]
    for line in stored["predictors"]:
        assert line["certified"] is None or line["error"] < line["certified"]
    assert gg.load(tmp_path / "demo" / "digits.gingham").n_clusters_ == (40, 64)
