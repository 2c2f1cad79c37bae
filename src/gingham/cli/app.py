"""The commands: options in, facts out. Every expected failure is a sentence and exit code 2."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

import gingham
from gingham.cli import screen
from gingham.cli.joint import joint
from gingham.errors import GinghamError

app = typer.Typer(
    name="gingham",
    help="Co-cluster tables of tuples, predict what is missing, and prove how far to trust it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.add_typer(joint, name="joint")

# Some versions of typer bring their own click; this is the base of usage errors in all of them.
WrongUsage: Any = typer.BadParameter.__mro__[2]

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or NDJSON file (.gz too); - is standard input.")]
ModelFile = Annotated[str, typer.Argument(help="Model file written by gingham fit.")]
Format = Annotated[str | None, typer.Option("--format", help="csv, tsv, parquet or ndjson; told by the file's name.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with a missing value.")]


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        with screen.warnings_as_notes():
            result = app(arguments, standalone_mode=False)
    except GinghamError as error:
        screen.say_error(str(error))
        return 2
    except typer.Exit as stop:
        return int(stop.exit_code)
    except WrongUsage as error:
        error.show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        screen.say_error("Interrupted.")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone; nothing more to write
        return 0
    except MemoryError:
        screen.say_error("There is not enough memory for this. Use fewer clusters or fewer rows.")
        return 2
    except OSError as error:
        name = "" if error.filename is None else f" ({error.filename})"
        screen.say_error(f"{error.strerror or error}{name}.")
        return 2
    except Exception as error:
        screen.say_error(
            f"gingham met a case it does not know: {type(error).__name__}: {error}. "
            "Set GINGHAM_TRACEBACK=1 to see where, and please report it."
        )
        if os.environ.get("GINGHAM_TRACEBACK"):
            screen.side().print(traceback.format_exc(), markup=False)
        return 1
    return result if isinstance(result, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        screen.console().print(f"gingham {gingham.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating --clusters 13,6 --loss absolute --beta 1 "
    "--alphabet 1..5 --out model.gingham\n\n"
    "gingham fit edges.csv --model graph --axes from,to --clusters 10\n\n"
    "zcat votes.csv.gz | gingham fit - --axes member,bill --label vote --json"
)
def fit(
    file: File,
    axes: Annotated[str, typer.Option(help="Columns with ids, one per axis: user,movie.")],
    label: Annotated[str | None, typer.Option(help="Column to predict; a graph or counts need none.")] = None,
    model: Annotated[
        str,
        typer.Option(
            help="coclustering, layered, committee, bayesian, tree, graph, cooccurrence, information, pairwise."
        ),
    ] = "coclustering",
    merges: Annotated[
        str | None, typer.Option(help="Of a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters…; or auto.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path("model.gingham"),
    weight: Annotated[str | None, typer.Option(help="Column with counts.")] = None,
    clusters: Annotated[str | None, typer.Option(help="Clusters per axis: 13,6. Chosen by size if absent.")] = None,
    loss: Annotated[str | None, typer.Option(help="absolute, quadratic, zero-one or log; told by the labels.")] = None,
    beta: Annotated[float | None, typer.Option(help="Trade-off per unit of loss; from a pilot if absent.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5 or a,b,c. Certificates want it stated.")
    ] = None,
    objective: Annotated[str, typer.Option(help="tradeoff, or certificate to minimise the certificate.")] = "tradeoff",
    starts: Annotated[int, typer.Option(help="Starts; the best is kept.", min=1)] = 1,
    max_iter: Annotated[int, typer.Option(help="Most sweeps of one start.", min=1)] = 200,
    holdout: Annotated[float, typer.Option(help="Share of rows set aside to measure the error; 0 for none.")] = 0.1,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted run.")] = False,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0)] = 10.0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Co-cluster a table of tuples and save the model."""
    from gingham.cli import data, fitting, tables
    from gingham.cli.checkpoint import checkpoint_of, forget
    from gingham.cli.kinds import OTHERS, check_kind
    from gingham.cli.others import fit_other

    _writable(out)
    check_kind(model)
    names = _names(axes, "--axes")
    wish = fitting.Wish(
        axes=names,
        label=label,
        model=model,
        merges=merges,
        weight=weight,
        clusters=fitting.parse_clusters(clusters, len(names)),
        loss=loss,
        beta=beta,
        alphabet=alphabet,
        objective=objective,
        n_init=starts,
        max_iter=max_iter,
        holdout=holdout,
        seed=seed,
    )
    table = tables.read_table(file, format)
    if model in OTHERS:
        found, notes, facts = fit_other(table, wish, quiet or json)
        found.save(out, notes)
        screen.show({**facts, "file": str(out)}, json, f"Clustering of {file}")
        return
    if label is None:
        raise GinghamError(f"--model {model} predicts a column of labels: name it with --label.")
    rows = data.rows(table, names, label, weight, drop=drop_missing)
    kept = checkpoint_of(out)
    if resume and not kept.exists():
        screen.say_note("There is no checkpoint; the fit begins at its beginning.")
    found, notes, facts = fitting.fit(rows, wish, quiet or json, kept, resume, checkpoint_every)
    found.save(out, notes)
    if getattr(found, "interrupted_", False):
        screen.say_note("The model so far was saved; the same command with --resume goes on.")
    else:
        forget(kept)
    screen.show({**facts, "file": str(out)}, json, f"Co-clustering of {file}")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --alphabet 1..5\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --betas 2,1,.5 --cv 10 --plot path.png --json"
)
def path(
    file: File,
    axes: Annotated[str, typer.Option(help="Columns with ids, one per axis: user,movie.")],
    label: Annotated[str, typer.Option(help="Column to predict.")],
    betas: Annotated[str | None, typer.Option(help="Values to try: 2,1,.5. Twelve around the noise if absent.")] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Clusters per axis: 13,6. By the size of the data if absent.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="absolute, quadratic, zero-one or log; told by the labels.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5; certificates want them stated.")
    ] = None,
    cv: Annotated[int, typer.Option(help="Folds; 0 for none.", min=0)] = 5,
    delta: Annotated[float, typer.Option(help="Certificates hold with probability 1 − delta.")] = 0.05,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .png or .pdf.")] = None,
    seed: Seed = 0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a range of β, each from the one before, with cross-validated loss and certificate."""
    from gingham.cli import betas as paths
    from gingham.cli import data, fitting, tables

    if plot is not None:
        _writable(plot)
    names = _names(axes, "--axes")
    wish = fitting.Wish(
        axes=names, label=label, clusters=fitting.parse_clusters(clusters, len(names)), loss=loss, alphabet=alphabet,
        seed=seed,
    )  # fmt: skip
    rows = data.rows(tables.read_table(file, format), names, label, None, drop=drop_missing)
    found = paths.path(rows, wish, paths.parse_betas(betas), cv, delta, jobs, quiet or json)
    if plot is not None:
        paths.save_plot(found, plot)
    table = found.table
    best = {by: found.best(by).beta for by in (["cv", "one-se"] if cv else []) + (["certificate"] if alphabet else [])}
    if json:
        screen.print_json({"path": table, "best": best})
        return
    screen.grid(f"Path of β for {file}", list(table), list(zip(*table.values())))
    screen.show(best, False, "Best β")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham predict model.gingham pairs.csv --out predicted.csv\n\n"
    "gingham predict model.gingham pairs.csv --rule median --proba"
)
def predict(
    model: ModelFile,
    file: File,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write; standard output if absent.")] = None,
    rule: Annotated[str | None, typer.Option(help="mean, median or mode of the randomised answer.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    format: Format = None,
) -> None:
    """Predict the labels of the tuples in a table."""
    from gingham.cli import fitting, tables

    table = tables.read_table(file, format)
    tables.write_table(fitting.predict(model, table, rule, proba), out, format if out in (None, "-") else None)


@app.command(epilog="[bold]Examples[/]\n\ngingham clusters model.gingham --out clusters.csv")
def clusters(
    model: ModelFile,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write; standard output if absent.")] = None,
    format: Format = None,
) -> None:
    """List every item with its most probable cluster and the share of its membership."""
    from gingham.cli import tables
    from gingham.cli.others import clusters_table
    from gingham.estimators.base import load as load_model

    tables.write_table(clusters_table(load_model(model)), out, format)


@app.command(epilog="[bold]Examples[/]\n\ngingham datasets\n\ngingham datasets movielens-100k --out ratings.csv")
def datasets(
    name: Annotated[str | None, typer.Argument(help="A data set to fetch; all are listed if absent.")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write; standard output if absent.")] = None,
    json: Json = False,
) -> None:
    """List the public data sets, or fetch one and write it as a table of tuples."""
    from gingham.cli.public import export, known

    if name is None:
        rows = known()
        if json:
            screen.print_json({row[0]: {"files": row[1], "here": row[2]} for row in rows})
        else:
            screen.grid("Public data sets", ("name", "files", "here"), rows)
        return
    export(name, out)


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham certify model.gingham ratings.csv\n\n"
    "gingham certify model.gingham ratings.csv --delta .01 --bound theorem-7 --alphabet 1..5 --json\n\n"
    "gingham certify --labels users.csv,movies.csv ratings.csv --label rating --alphabet 1..5"
)
def certify(
    model: Annotated[str, typer.Argument(help="Model file; with --labels the table of tuples itself.")],
    file: Annotated[str | None, typer.Argument(help="Table: CSV, TSV, Parquet, NDJSON; - is standard input.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Clusters from elsewhere: a file (item, cluster) per axis, with commas.")
    ] = None,
    axes: Annotated[str | None, typer.Option(help="With --labels: the columns of ids, in the same order.")] = None,
    loss: Annotated[str, typer.Option(help="With --labels: absolute, zero-one, quadratic, log.")] = "absolute",
    delta: Annotated[float, typer.Option(help="The guarantee holds with probability 1 - delta.")] = 0.05,
    bound: Annotated[
        str, typer.Option(help="log-wealth, type-kl, kl, split-kl, bernstein, theorem-7 ...")
    ] = "log-wealth",
    predictor: Annotated[str, typer.Option(help="gibbs (randomised) or mean.")] = "gibbs",
    alphabet: Annotated[str | None, typer.Option(help="All possible labels, if not stated when fitting.")] = None,
    label: Annotated[str | None, typer.Option(help="Label column, if not the one of the fit.")] = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Guarantee the loss of a model on new data, from the data it was fitted on.

    Rows that the fit set aside are recognised and give a second certificate, of the prediction itself.
    """
    from gingham.cli import fitting
    from gingham.cli.defaults import parse_alphabet

    options: dict[str, Any] = {"bound": bound, "delta": delta, "predictor": predictor}
    if labels is not None:
        from gingham.cli.own_labels import certify_own_labels

        if label is None or alphabet is None:
            raise GinghamError("Say which column holds the labels (--label) and what they can be (--alphabet 1..5).")
        own = certify_own_labels(
            file or model,
            labels,
            label=label,
            axes=axes,
            loss=loss,
            alphabet=parse_alphabet(alphabet, False),
            kind=format,
            **options,
        )
        if json:
            screen.print_json(own.to_dict())
        else:
            screen.console().print(own.explain(), markup=False, soft_wrap=True)
        return
    if file is None:
        raise GinghamError("Name the table after the model, or give clusters from elsewhere with --labels.")
    fitted, seen, unseen = fitting.reopen(model, file, format, label, drop_missing)
    if alphabet is None:
        fitting.need_stated_labels(fitted)
    if alphabet is not None:
        options["alphabet"] = parse_alphabet(alphabet, seen.y.dtype.kind not in "biuf")
    found = fitting.certificates(fitted, seen, unseen, options)
    if json:
        screen.print_json({name.replace(" ", "_"): certificate.to_dict() for name, certificate in found.items()})
        return
    for name, certificate in found.items():
        screen.heading(f"From the {name}")
        screen.console().print(certificate.explain(), markup=False, soft_wrap=True)


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham report model.gingham ratings.csv -o report.html\n\n"
    "gingham report model.gingham ratings.csv --alphabet 1..5 --title 'What our viewers like'"
)
def report(
    model: ModelFile,
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    delta: Annotated[float, typer.Option(help="Certificates hold with probability 1 - delta.")] = 0.05,
    alphabet: Annotated[str | None, typer.Option(help="All possible labels, if not stated when fitting.")] = None,
    label: Annotated[str | None, typer.Option(help="Label column, if not the one of the fit.")] = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Write one self-contained page: checkerboard, clusters, cells, errors, certificates, map, search."""
    from gingham.cli.reporting import make_report

    _writable(out)
    facts = make_report(model, file, out, title, delta, alphabet, label, drop_missing, format)
    screen.show(facts, json, "Report")


@app.command(
    epilog="[bold]Examples[/]\n\ngingham demo\n\ngingham demo --out somewhere --seed 3",
)
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("demo"),
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hide 60 % of the pixels of 1797 handwritten digits and fill them in, with a certificate."""
    from gingham.cli.demo import run_demo, show_demo

    facts = run_demo(out, seed, quiet or json)
    if json:
        screen.print_json(facts)
    else:
        show_demo(facts)


def _names(listed: str, option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise GinghamError(f"{option} is empty; give column names, such as {option} user,movie.")
    return names


def _writable(path: Path) -> None:
    """Refuse a target early, before minutes of work."""
    if path.is_dir():
        raise GinghamError(f"{str(path)!r} is a folder; give the name of a file to write.")
    if not path.parent.is_dir():
        raise GinghamError(f"The folder {str(path.parent)!r} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise GinghamError(f"The folder {str(path.parent)!r} cannot be written to.")
