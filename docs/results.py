"""All benchmark results as one page of tables, from benchmarks/results/*.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MAX_ROWS = 40
FIRST = ("summary", "means", "mean")


def write_results(results: Path, folder: Path) -> None:
    """One page with a section for each JSON file."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    lines = ["# All tables", "", "Every section shows one file of `benchmarks/results`.", ""]
    for path in sorted(results.glob("*.json")):
        lines += section(path)
    (folder / "tables.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def section(path: Path) -> list[str]:
    """Title, settings and tables of one benchmark."""
    content = json.loads(path.read_text(encoding="utf-8"))
    title = path.stem.replace("_", " ").capitalize()
    versions = ", ".join(f"{name} {number}" for name, number in content.get("versions", {}).items())
    lines = [f"## {title}", "", f"`{path.name}`; seed {content.get('seed', '–')}. {versions}.", ""]
    settings = content.get("settings") or {}
    if settings:
        lines += ["Settings:", "", *flat_table(settings), ""]
    results = content.get("results", {})
    if isinstance(results, dict):  # summaries come first
        results = {key: results[key] for key in sorted(results, key=lambda key: key not in FIRST)}
    return [*lines, *tables(results), ""]


def tables(value: Any, name: str = "") -> list[str]:
    """Nested results as tables: a list of records is one table, a mapping of records another."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        return record_table(value)
    if isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values()):
        if all(not any(isinstance(x, (dict, list)) for x in v.values()) for v in value.values()):
            return record_table([{"": key, **row} for key, row in value.items()])
        lines = []
        for key, part in value.items():
            lines += [f"**{escape(str(key))}**", "", *tables(part, str(key)), ""]
        return lines
    if isinstance(value, dict):
        plain = {k: v for k, v in value.items() if not isinstance(v, (dict, list)) or _short(v)}
        nested = {k: v for k, v in value.items() if k not in plain}
        lines = flat_table(plain) if plain else []
        for key, part in nested.items():
            lines += ["", f"**{escape(str(key))}**", "", *tables(part, str(key))]
        return lines
    return flat_table({name or "value": value})


def _short(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 8 and not any(isinstance(v, (dict, list)) for v in value)


def record_table(rows: list[dict[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(escape(str(c)) for c in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(shown(row.get(c)) for c in columns) + " |" for row in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        lines += ["", f"({len(rows) - MAX_ROWS} more rows in the file.)"]
    return lines


def flat_table(values: dict[str, Any]) -> list[str]:
    return ["| | |", "|---|---|", *[f"| {escape(str(name))} | {shown(value)} |" for name, value in values.items()]]


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return escape(", ".join(shown(v) for v in value[:8]) + (", …" if len(value) > 8 else ""))
    if isinstance(value, dict):
        return escape(", ".join(f"{k}: {shown(v)}" for k, v in list(value.items())[:8]))
    return escape(str(value))


def escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
