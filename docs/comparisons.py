"""Tables of results.md that belong to one model each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from measured import results, table


def rounded(row: Mapping[str, Any], key: str, form: str = ".3f") -> str | None:
    value = row.get(key)
    return None if value is None else format(value, form)


def seconds(row: Mapping[str, Any], key: str) -> str | None:
    """Two digits, and no exponent."""
    value = rounded(row, key, ".2g")
    return None if value is None else f"{float(value):g}"


def counts() -> Iterator[str]:
    """Co-occurrence clustering beside CoclustInfo and sib."""
    rows = []
    for name, found in results("peers_cooccurrence").items():
        blocks, ours, sib = (found[key] for key in ("blocks", "rows, ours", "rows, sib"))
        kept = (rounded(blocks, key, ".4f") for key in ("information_kept", "coclustinfo_ten_starts"))
        spent = (seconds(blocks, key) for key in ("cpu_s", "coclustinfo_cpu_s"))
        rows.append([name, found["clusters"], *kept, *spent, rounded(ours, "nmi"), rounded(sib, "nmi")])
    head = ("data set", "clusters", "information kept", "CoclustInfo", "CPU s", "CoclustInfo, CPU s", "NMI", "sib, NMI")
    yield from table(head, rows)


MIXED = {
    "ml_binary": "MovieLens, above 3 stars",
    "ml": "MovieLens, 1–5",
    "jester_binary": "Jester, not negative",
    "jester": "Jester, Gaussian",
    "foodmart_binary": "Foodmart, above median",
    "foodmart": "Foodmart, Poisson",
}


def mixed() -> Iterator[str]:
    """Held-out perplexity of Bayesian co-clustering and simpler models."""
    methods = {"global": "one constant", "additive": "rows + columns", "bnb": "naive Bayes", "bcc": "co-clustering"}
    rows = []
    for key, title in MIXED.items():
        summary = results("bayesian_table3")[key]["summary"]
        rows.append([title, *(rounded(summary[method], "mean") for method in methods)])
    yield from table(("data", *methods.values()), rows)


def side_information() -> Iterator[str]:
    """Median predictions with and without tables of properties."""
    names = {
        "ratings": "ratings alone",
        "ratings_cold_start": "ratings alone, rare movies placed anew",
        "joint": "with side information",
        "joint_cold_start": "with side information, rare movies placed anew",
    }
    columns = ("one_fit_mae_few", "one_fit_mae_many", "committee_mae_few", "committee_mae_many")
    means = results("joint_movielens")["mean"]
    head = ("mean absolute error", "one fit, at most 5 ratings", "others", "committee, at most 5 ratings", "others")
    yield from table(head, ([names[key], *(rounded(means[key], c, ".4f") for c in columns)] for key in names))


def views() -> Iterator[str]:
    """Kernel CCA of two views."""
    columns = ("gingham_cpu_s", "gingham_kcca_cpu_s", "cca_zoo_cpu_s")
    found = results("speed_views_kcca")["rows"]
    head = ("objects", "PairwiseClusterAnalysis", "KernelCCA", "cca-zoo")
    yield from table(head, ([n, *(seconds(row, key) for key in columns)] for n, row in found.items()))


def default_model() -> Iterator[str]:
    """What ``gingham fit`` could take for ratings."""
    found = results("default_rating_model")
    rows = ([name, *(rounded(rows[name], "rmse") for rows in found.values())] for name in next(iter(found.values())))
    yield from table(("RMSE", *(name[0].upper() + name[1:] for name in found)), rows)


def readable() -> Iterator[str]:
    """Groups of documents at the readable size beside known classes."""
    rows = []
    for name, found in results("summary_documents")["documents"].items():
        shown = found["summary"]
        rows.append([name, found["classes"], shown["size"], rounded(shown, "nmi", ".2f"), rounded(shown, "ari", ".2f")])
    yield from table(("documents", "classes", "readable size", "NMI", "ARI"), rows)


def pages() -> Iterator[str]:
    """Report pages of five tables and a large one."""
    columns = {"fit_cpu_s": ".1f", "page_cpu_s": ".1f", "megabytes": ".2f", "opens_s": ".2f"}
    rows = (
        [name, *(rounded(row, key, form) for key, form in columns.items())]
        for name, row in results("summary_pages").items()
    )
    yield from table(("table", "fit, CPU s", "page, CPU s", "megabytes", "opens in, s"), rows)


ATTRIBUTES = {
    "digits: the digit": "the digit, from half of the pixels",
    "digits: other pixels": "another pixel, from half of the pixels",
    "news: the topic": "the topic of a news text, from its words",
    "movies: other stars": "rating of another movie, from half of the movies",
}


def new_attributes() -> Iterator[str]:
    """Errors of predictions of a new attribute from a few labels."""
    methods = ("clusters", "five neighbours", "nearest neighbour", "logistic regression", "most frequent")
    rows = []
    for key, title in ATTRIBUTES.items():
        for n, found in results("papers_new_attributes")[key]["error"].items():
            if n in ("1", "5", "20", "100"):
                rows.append([title, n, *(rounded(found, method) for method in methods)])
    yield from table(("new attribute", "labels", *methods), rows)


TABLES = {
    "new_attributes": new_attributes,
    "counts": counts,
    "mixed": mixed,
    "side_information": side_information,
    "views": views,
    "default_model": default_model,
    "readable": readable,
    "pages": pages,
}
