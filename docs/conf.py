"""Sphinx settings. The pages of the public names are written here, from the groups of `api_groups`."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))
sys.path.insert(0, str(HERE))

from api_groups import lines as api_lines  # noqa: E402
from api_groups import names  # noqa: E402
from api_groups import value as public_value  # noqa: E402
from measured import write_page_tables  # noqa: E402
from tutorials import write_report  # noqa: E402

import gingham  # noqa: E402
from papers import write_verdicts  # noqa: E402
from results import write_results  # noqa: E402

project = "gingham"
author = "The gingham developers"
copyright = author
version = release = gingham.__version__
extensions = [
    "sphinx.ext.autodoc",
    "mathml",
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinxcontrib.bibtex",
]
if not os.environ.get("GINGHAM_DOCS_FAST"):
    extensions.append("sphinx_gallery.gen_gallery")
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
exclude_patterns = ["_build", "**.ipynb_checkpoints", "api/generated/index.rst"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["gingham.css"]
html_title = f"gingham {version}"
html_show_sourcelink = False
html_sidebars = {"index": ["globaltoc.html"]}
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 1,
    "navbar_align": "left",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
}
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"(plot_|two_views|translations)",  # the demo writes files of its own and is shown only
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]


FOREIGN = "BaseEstimator, ValueError, UserWarning, tuple"  # whose members are documented elsewhere


def write_api_pages() -> None:
    """One page for each public name."""
    folder = HERE / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.rst"):
        old.unlink()
    for name in names():
        value = public_value(name)
        full = f"gingham.{name}"
        module, _, last = full.rpartition(".")
        lines = [last, "=" * len(last), "", f".. currentmodule:: {module}", ""]
        if inspect.isclass(value):
            lines += [
                f".. autoclass:: {last}",
                "   :members:",
                f"   :inherited-members: {FOREIGN}",
            ]
        elif inspect.ismodule(value):
            lines += [f".. automodule:: {full}", "   :members:"]
        else:
            lines += [f".. autofunction:: {last}"]
        (folder / f"{name}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "groups.inc").write_text("\n".join(api_lines()) + "\n", encoding="utf-8")


write_api_pages()
write_results(HERE.parent / "benchmarks" / "results", HERE / "results_tables")
write_page_tables(HERE / "results_tables")
write_verdicts(HERE / "papers")
write_report(HERE / "_static" / "example-report.html")


def skip_foreign(app, what, name, value, skip, options):
    """Leave out what scikit-learn documents itself."""
    module = getattr(inspect.unwrap(value), "__module__", None) if callable(value) else None
    if name.startswith("set_") and name.endswith("_request"):
        return True
    return True if module and module.startswith(("sklearn", "numpy")) else None


def plain_symbols(app, what, name, value, options, lines):
    """|Y|, |y − y'| and fitted_ names are no markup."""
    for at, line in enumerate(lines):
        parts = line.split("``")  # every second part is code and stays as it is
        parts[::2] = [re.sub(r"\|([^|`]{1,20})\|", r"\\|\1\\|", part) for part in parts[::2]]
        line = "``".join(parts)
        lines[at] = re.sub(r"(?<![`\w.:])([A-Za-z]\w*)_(?=[\s,.;:)\]]|$)", r"``\1_``", line)


def setup(app):
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", plain_symbols, priority=900)
