"""The page of a ranking: the coarse board, reasons of users' lists, what pulls an item. Data stand in it as text."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from gingham.certificates.ranking import RankingCertificate
from gingham.models.ranking.estimator import BasketRanker
from gingham.report.page import filled, write_text

TOLD = 4  # groups that are shown for a recommendation


def summarize(
    model: BasketRanker,
    users: Sequence[object] = (),
    items: Sequence[object] = (),
    *,
    n: int = 10,
    certificate: RankingCertificate | None = None,
    title: str = "What comes next",
) -> dict[str, object]:
    """All that the page shows, as plain values."""
    board = model.boards_[1]
    names = dict(zip(model.items_.tolist(), model.item_names_))
    chosen = {
        name.replace("_", " "): ", ".join(f"{v:g}" for v in value)
        if isinstance(value, tuple | list)
        else f"{value:.4g}"
        for name, value in model.selection_["settings"].items()
    }
    return {
        "title": title,
        "n_users": len(model.users_),
        "n_items": len(model.items_),
        "n_taken": int(model.baskets_.taken.nnz),
        "columns": board.target_groups,
        "rows": list(zip(board.basket_groups, board.table.tolist())),
        "largest": max(float(np.abs(board.table).max()), 1e-12),
        "users": [_user(model, user, n, names) for user in users],
        "items": [_item(model, item, n, names) for item in items],
        "certificate": None if certificate is None else certificate.explain(),
        "settings": chosen,
        "judged": model.selection_["users"],
    }


def _user(model: BasketRanker, user: object, n: int, names: dict[object, str]) -> dict[str, object]:
    """The list of a user: items, scores, and the shares of the groups that tell most."""
    found = [item for item in model.top([user], n)[0].tolist() if item is not None]
    rows = [
        (names[why.item], why.score, sorted(zip(why.shares, why.groups), key=lambda pair: -abs(pair[0]))[:TOLD])
        for why in (model.explain(user, found) if found else [])
    ]
    return {"name": str(user), "basket": [names[item] for item in model.basket_of(user).tolist()], "rows": rows}


def _item(model: BasketRanker, item: object, n: int, names: dict[object, str]) -> dict[str, object]:
    """An item, those wanted by the same people, and what each group adds to it."""
    board, taken = model.boards_[0], model.baskets_.popularity
    code = int(model.item_codes([item])[0])
    # What one item of a group adds on average to this item, by the fine board's column, as groups of the coarse one.
    column = board.table[board.basket_group, board.target_group[code]] * np.sqrt(taken[code] + 1.0)
    groups = len(model.group_names_)
    mass = np.maximum(np.bincount(model.groups_, taken, groups), 1.0)
    pulls = 1000 * np.bincount(model.groups_, taken * column, groups) / mass
    similar = model.similar([item], n)["similar"]
    return {
        "name": names[item],
        "taken": int(taken[code]),
        "group": model.group_names_[model.groups_[code]],
        "similar": [
            names[other] for other in (similar.tolist() if hasattr(similar, "tolist") else similar.to_pylist())
        ],
        "pulls": [(float(pulls[g]), model.group_names_[g]) for g in np.argsort(-pulls, kind="stable").tolist()],
        "widest": max(float(np.abs(pulls).max()), 1e-12),
    }


def render(summary: dict[str, object]) -> str:
    """The page as text. It loads nothing from anywhere."""
    return filled("ranking.html", **summary)


def write(
    model: BasketRanker,
    path: str | os.PathLike[str],
    users: Sequence[object] = (),
    items: Sequence[object] = (),
    *,
    n: int = 10,
    certificate: RankingCertificate | None = None,
    title: str = "What comes next",
) -> None:
    """Write the page of a ranking, for some users and items; the file appears whole or not at all."""
    write_text(render(summarize(model, users, items, n=n, certificate=certificate, title=title)), path)
