"""--loss takes every registered loss, not a list of its own."""

import gingham as gg
from gingham.cells import LOSSES


def test_every_loss_on_labels_can_be_named(gingham, ratings, tmp_path):
    for loss in LOSSES:
        out = tmp_path / f"{loss}.gingham"
        ran = gingham(
            "fit", ratings, "--axes", "user,movie", "--label", "rating", "--clusters", "2,2", "--loss", loss,
            "--alphabet", "1..5", "-o", out, "-q",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        assert gg.load(out).posterior_.cells[0].name == loss


def test_a_loss_that_nobody_registered_is_refused_with_the_way_out(gingham, ratings, tmp_path):
    ran = gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--loss", "huber", "-o", tmp_path / "m")
    assert ran.code == 2
    assert "pinball" in ran.err
    assert "--plugin" in ran.err
    ran = gingham("--plugin", "no_such_module", "fit", ratings, "--axes", "user,movie", "-o", tmp_path / "m")
    assert ran.code == 2
    assert "no_such_module" in ran.err
