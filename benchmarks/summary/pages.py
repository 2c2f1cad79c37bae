"""Pages as a new user gets them: seconds to fit and to write, weight, opening time, and their first screens.

Five tables go through ``gingham fit`` and ``gingham report`` with nothing set: ratings with what is known of viewers
and films, purchases, documents, a graph, and planted play counts; then a million users by a hundred thousand items. A
page is opened fifteen times by headless chromium; the quickest is kept, from the beginning of the navigation to the end
of its load event, with the first screen drawn.
``--pictures FOLDER`` writes the first screens as PNG.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, load, previous, write
from gingham.cli.app import run

OPENED = 15  # times; the quickest counts
WINDOW = (1360, 900)
COLOURS = 160  # of a picture: enough for flat areas and letters
FIGURES = {
    "weight, MB": "*/megabytes",
    "opens in, seconds": "*/opens_s",
    "CPU seconds to fit and to write": "*/fit_cpu_s",
}
Options = list[str]
FIRST = (  # names of artists are made of these
    "Amber Quiet Silver Velvet Paper Hollow Golden Distant Broken Electric Winter Crimson Gentle Marble Neon Salty "
    "Tidal Urban Wooden Young"
)
SECOND = (
    "Foxes Rivers Harbors Lanterns Sparrows Engines Gardens Mirrors Shadows Trains Whales Castles Pilots Ravens Bells "
    "Satellites Kites Orchards Sailors Thieves"
)


def ratings(folder: str, to: Path) -> Options:
    """MovieLens-100K with age, gender and occupation of viewers, and genres and years of films."""
    data = load(folder, "ml100k.npz")
    pl.DataFrame({"viewer": data["rows"] + 1, "film": data["cols"] + 1, "rating": data["vals"]}).write_csv(
        to / "ratings.csv"
    )
    films = pl.read_csv(data_file(folder, "ml100k_items.csv.gz"))
    genres = [name for name in films.columns if name not in ("col", "title", "release_date", "unknown")]
    listed = ["|".join(name for name in genres if row[name]) for row in films.iter_rows(named=True)]
    years = films["release_date"].str.extract(r"(\d{4})$").cast(pl.Int64)
    pl.DataFrame({"film": films["col"] + 1, "title": films["title"], "genre": listed, "year": years}).write_csv(
        to / "films.csv"
    )
    viewers = pl.read_csv(data_file(folder, "ml100k_users.csv.gz"))
    pl.DataFrame({
        "viewer": viewers["row"] + 1, "age": viewers["age"], "occupation": viewers["occupation"],
        "gender": viewers["gender"].replace({"M": "men", "F": "women"}),
    }).write_csv(to / "viewers.csv")  # fmt: skip
    info = [f"--info=film={to / 'films.csv'}", f"--info=viewer={to / 'viewers.csv'}"]
    return [str(to / "ratings.csv"), "--alphabet", "1..5", *info]


def purchases(folder: str, to: Path) -> Options:
    """Foodmart: who bought what in 1998, with what is known of customers and products."""
    data = load(folder, "foodmart_sales.npz")
    lines = (data["day"] // 100 >= 199801) & (data["day"] // 100 <= 199811)
    table = pl.DataFrame({"customer": data["customer_id"][lines], "product": data["product_id"][lines]})
    table.group_by("customer", "product", maintain_order=True).len("purchases").write_csv(to / "purchases.csv")
    products = pl.read_csv(data_file(folder, "foodmart_products.csv.gz"))
    products.select(
        pl.col("product_id").alias("product"), pl.col("product_name").alias("title"),
        pl.col("product_department").alias("department"), pl.col("product_category").alias("category"),
    ).write_csv(to / "products.csv")  # fmt: skip
    customers = pl.read_csv(data_file(folder, "foodmart_customers.csv.gz"))
    kept = ["country", "state_province", "education", "occupation", "member_card", "total_children"]
    customers.select(pl.col("customer_id").alias("customer"), *kept).write_csv(to / "customers.csv")
    info = [f"--info=product={to / 'products.csv'}", f"--info=customer={to / 'customers.csv'}"]
    return [str(to / "purchases.csv"), *info]


def documents(folder: str, to: Path) -> Options:
    """classic3: abstracts of three collections × words."""
    counts = sparse.load_npz(data_file(folder, "docs_classic3.npz")).tocoo()
    known = np.load(data_file(folder, "docs_classic3_labels.npz"), allow_pickle=True)
    words = np.array([str(word) for word in known["terms"]])
    pl.DataFrame({"document": counts.row + 1, "word": words[counts.col], "count": counts.data.astype(int)}).write_csv(
        to / "documents.csv"
    )
    return [str(to / "documents.csv")]


def graph(folder: str, to: Path) -> Options:
    """Interactions of yeast's proteins, with whether a protein is in one of the complexes of CYC2008."""
    data = load(folder, "yeast_biogrid.npz")
    names = data["names"].astype(str)
    pl.DataFrame({"protein": names[data["edges"][:, 0]], "other": names[data["edges"][:, 1]]}).write_csv(
        to / "edges.csv"
    )
    known = np.isin(np.arange(len(names)), data["cyc2008_members"]).astype(int)
    pl.DataFrame({"node": names, "in a known complex": known}).write_csv(to / "proteins.csv")
    return [str(to / "edges.csv"), f"--info=node={to / 'proteins.csv'}"]


def plays(folder: str, to: Path) -> Options:
    """Planted: 1,500 listeners of four kinds, 400 artists of five genres, plays with a heavy tail."""
    rng = np.random.default_rng(0)
    genres = np.array(["jazz", "metal", "folk", "techno", "opera"])
    liking = np.array([[9, 0.3, 4, 0.3, 2], [0.3, 9, 0.3, 4, 0.3], [2, 0.3, 9, 0.3, 3], [0.3, 2, 0.3, 9, 0.3]])
    n, kind, genre = 200_000, rng.integers(0, 4, 1500), rng.integers(0, 5, 400)
    eager, famous = rng.lognormal(0, 1, 1500), rng.lognormal(0, 1, 400)
    listener = rng.choice(1500, n, p=eager / eager.sum())
    artist = rng.choice(400, n, p=famous / famous.sum())
    kept = rng.random(n) < liking[kind[listener], genre[artist]] / liking.max()
    table = pl.DataFrame({"listener": listener[kept], "artist": artist[kept]}).unique(maintain_order=True)
    first, second = ([*words.split()] for words in (FIRST, SECOND))
    names = rng.permutation([f"The {a} {b}" for a in first for b in second])[:400]
    table = table.with_columns(
        pl.Series("artist", names[table["artist"].to_numpy()]),
        pl.Series("plays", np.ceil(rng.lognormal(1.2, 1, table.height)).astype(int)),
    )
    table.write_csv(to / "plays.csv")
    ages = np.array([45, 25, 38, 29])[kind] + rng.integers(-8, 9, 1500)
    pl.DataFrame({"listener": np.arange(1500), "age": ages}).write_csv(to / "listeners.csv")
    pl.DataFrame({"artist": names, "genre": genres[genre]}).write_csv(to / "artists.csv")
    return [str(to / "plays.csv"), f"--info=listener={to / 'listeners.csv'}", f"--info=artist={to / 'artists.csv'}"]


TABLES: dict[str, Callable[[str, Path], Options]] = {
    "ratings": ratings, "purchases": purchases, "documents": documents, "graph": graph, "plays": plays,
}  # fmt: skip


def large(seed: int) -> dict[str, object]:
    """1,000,000 users × 100,000 items in 8 × 8 planted blocks: seconds to read and to write, and the weight."""
    from gingham.data import Mode
    from gingham.report import summarize, write
    from gingham.summary import Observed, Relation, summarize_observed

    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, 1_000_000, 3_000_000), rng.zipf(1.3, 3_000_000) % 100_000
    kept = rng.random(3_000_000) < np.where(user % 8 == item % 8, 1.0, 0.2)
    codes = (user[kept].astype(np.int32), item[kept].astype(np.int32))
    modes = (Mode("user", np.arange(1_000_000)), Mode("item", np.arange(100_000)))
    clusters = (np.arange(1_000_000) % 8, np.arange(100_000) % 8)
    observed = Observed(modes, (Relation((0, 1), codes, "lift", label="count"),), clusters, given=(True, True))
    row: dict[str, object] = {}
    began = time.process_time()
    summary = summarize_observed(observed)
    row["read_cpu_s"] = round(time.process_time() - began, 1)
    began, page = time.process_time(), Path("large.html")
    write(summarize(summary, observed, title="One million users"), page)
    row["page_cpu_s"] = round(time.process_time() - began, 1)
    row["megabytes"] = round(page.stat().st_size / 1e6, 2)
    return row


def browser() -> object:
    """Headless chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def opened(driver: object, page: Path) -> tuple[float, bytes]:
    """Seconds until the page has loaded and drawn its first screen, and that screen."""
    times = []
    width, height = WINDOW
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for _ in range(OPENED):
        driver.get("about:blank")
        driver.get(page.as_uri())
        spent = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd"
        times.append(driver.execute_script(spent) / 1000)
    time.sleep(0.3)
    return round(min(times), 3), driver.get_screenshot_as_png()


def small(picture: bytes) -> bytes:
    """A picture of few colours, and so of little weight."""
    from PIL import Image

    stream = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def timed(command: list[str]) -> float:
    began = time.process_time()
    code = run(command)
    if code:
        raise SystemExit(f"gingham {command[0]} ended with {code}.")
    return round(time.process_time() - began, 1)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help="one of the tables")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the first screens")
    parser.add_argument("--keep", type=Path, help="folder to keep tables, models and pages in")


def main() -> None:
    args = arguments(__doc__, "summary_pages", options)
    results = previous(args)
    args.out, args.data = args.out.resolve(), args.data and Path(args.data).resolve()
    pictures = args.pictures and args.pictures.resolve()
    names = [args.only] if args.only else ["plays"] if args.quick else [*TABLES, "large"]
    driver = browser()
    with TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            with chdir(folder):  # so that the commands on a page name files as a user would
                row, screen = page_of(driver, name, args.data, args.keep is not None)
            if pictures and name in TABLES:
                pictures.mkdir(parents=True, exist_ok=True)
                (pictures / f"page-{name}.png").write_bytes(small(screen))
            results[name] = {**results.get(name, {}), **row}
            print(name, results[name], flush=True)
            write(args, settings={"opened": OPENED, "window": list(WINDOW)}, results=results)
    driver.quit()


def page_of(driver: object, name: str, data: str, keep: bool) -> tuple[dict[str, object], bytes]:
    """Figures of one page, made in the present folder, and its first screen."""
    if name == "large":
        row = large(0)
        row["opens_s"], screen = opened(driver, Path("large.html").resolve())
        return row, screen
    said = TABLES[name](data, Path())
    model, page = Path(f"{name}.gingham"), Path(f"{name}.html")
    row = {}
    if not (keep and model.exists()):
        row["fit_cpu_s"] = timed(["fit", *said, "--out", str(model), "-q"])
    stated = []
    if name in ("purchases", "documents", "plays"):  # a guarantee for counts must know how many there are of each
        table = pl.read_csv(said[0])
        stated = ["--population", ",".join(str(table[column].n_unique()) for column in table.columns[:2])]
    row["page_cpu_s"] = timed(["report", str(model), said[0], "--out", str(page), "--no-progressive", *stated])
    row["megabytes"] = round(page.stat().st_size / 1e6, 2)
    row["opens_s"], screen = opened(driver, page.resolve())
    return row, screen


if __name__ == "__main__":
    main()
