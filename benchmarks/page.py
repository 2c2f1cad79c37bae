"""One page of what was measured: gingham beside its peers with ratios as bars, then every script with its figures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scale { position: relative; width: 14rem; height: 1rem; background: #f2f2f2; }
.scale i { position: absolute; top: 0; bottom: 0; } .scale b { position: absolute; left: 50%; top: -2px; bottom: -2px;
border-left: 1px solid #555; } .good { background: #2a7f62; } .bad { background: #b5533c; }
code { background: #f4f4f4; padding: 0 .2em; } .quiet { color: #666; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } .scale { background: #333; }
th, td { border-color: #444; } code { background: #2a2a2a; } .quiet { color: #aaa; } }
"""
LOWER = ("MAE", "RMSE", "error", "loss")  # measures of which less is better
WIDEST = 100.0  # a bar as long as the scale


def bar(ratio: float) -> str:
    """How many times better: to the right of the middle where gingham is ahead, on a logarithmic scale."""
    length = 50 * min(abs(math.log(ratio)) / math.log(WIDEST), 1.0)
    side = f"left:50%;width:{length:.1f}%" if ratio >= 1 else f"left:{50 - length:.1f}%;width:{length:.1f}%"
    return f'<div class="scale"><i class="{"good" if ratio >= 1 else "bad"}" style="{side}"></i><b></b></div>'


def compared(row: dict[str, Any]) -> str:
    """A row of the table of peers."""
    lower = any(word in row["measure"] for word in LOWER)
    better = row["gingham"] <= row["peer_quality"] if lower else row["gingham"] >= row["peer_quality"]
    direction = "lower is better" if lower else "higher is better"
    cells = (
        f"<td>{escape(row['task'])}, {escape(row['data'])}</td><td>{escape(row['peer'])} {escape(row['version'])}</td>",
        f'<td>{escape(row["measure"])} <span class="quiet">({direction})</span></td>',
        f'<td class="number">{"<b>" if better else ""}{row["gingham"]:.3f}{"</b>" if better else ""}</td>',
        f'<td class="number">{row["peer_quality"]:.3f}</td>',
        f'<td class="number">{row["gingham_cpu_s"]:.3g} s</td><td class="number">{row["peer_cpu_s"]:.3g} s</td>',
        f'<td class="number">{row["times_faster"]:.2g}×</td><td>{bar(row["times_faster"])}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def page(folder: Path, measured: Iterable[tuple[str, str, str, str]]) -> Path:
    """Write index.html into a folder of results; ``measured`` has title, purpose, state and figures of each script."""
    peers = folder / "peers_all.json"
    parts = json.loads(peers.read_text(encoding="utf-8"))["results"] if peers.exists() else {}
    rows = [compared(row) for part in parts.values() for row in part]
    lines = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>gingham: benchmarks</title>',
        f"<style>{STYLE}</style><h1>gingham beside its peers</h1>",
        "<p>Quality and CPU seconds of one fit, measured on this machine in one run. A bar to the right: gingham is as "
        "many times faster; to the left: slower. Bold: quality at least the peer's. The scale is logarithmic and ends "
        f"at {WIDEST:.0f}.</p>",
    ]
    if rows:
        head = ["what, data", "peer", "measure", "gingham", "peer", "CPU", "peer's CPU", "times faster", ""]
        lines += ["<table><tr>", *(f"<th>{name}</th>" for name in head), "</tr>", *rows, "</table>"]
    lines += [
        "<h2>Everything that was measured</h2>",
        "<p>Small versions: a first look. The figures that the documentation quotes come from full runs, see "
        "<code>benchmarks/README.md</code>. Peers that are not installed are left out; "
        "<code>make bench-peers</code> installs them.</p>",
        "<table><tr><th>script</th><th>what it measures</th><th>figures, or what is missing</th></tr>",
    ]
    for title, purpose, state, figures in measured:
        shown = escape(figures or state)
        more = "" if state == "done" or not figures else f'<br><span class="quiet">{escape(state)}</span>'
        lines.append(f"<tr><td><code>{escape(title)}</code></td><td>{escape(purpose)}</td><td>{shown}{more}</td></tr>")
    lines.append("</table></html>\n")
    written = folder / "index.html"
    written.write_text("\n".join(lines), encoding="utf-8")
    return written
