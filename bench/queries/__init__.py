"""The query sets: their text, their tables and the rows that are right.

In: `<set>.sql` and `expected/<set>-<size>.json` beside this file. Out: `Query` and `Size`.
"""

import dataclasses
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Size:
    """How large a set's tables are, and which file holds them."""

    rows: int
    files: dict[str, str]
    """Table name -> file in the data folder; none for generated numbers."""
    make: list[str]
    """Arguments of grouse-datagen that make the file, without --out."""
    parquet: str = ""
    """The file from which the shell copies those of text; empty where the files are Parquet themselves."""


def hits(rows: int, file: str) -> Size:
    return Size(rows, {"hits": file}, ["hits", "--rows", str(rows)])


def g1(rows: int, file: str) -> Size:
    return Size(rows, {"g1": file}, ["g1", "--rows", str(rows), "--groups", "100"])


def tpch(rows: int, scale: str) -> Size:
    return Size(rows, {"lineitem": f"lineitem_sf{scale}.parquet"}, ["tpch", "--table", "lineitem", "--scale", scale])


def text(rows: int, file: str) -> Size:
    files = {"g1_csv": f"g1_{rows}.csv", "g1_json": f"g1_{rows}.ndjson"}
    return dataclasses.replace(g1(rows, file), files=files, parquet=file)


def numbers(rows: int) -> Size:
    return Size(rows, {}, [])


SIZES = {
    "hits": {"default": hits(10_000_000, "hits.parquet"), "small": hits(100_000, "hits_100k.parquet")},
    "g1": {"default": g1(10_000_000, "g1_1e7.parquet"), "small": g1(100_000, "g1_100k.parquet")},
    "tpch": {"default": tpch(6_001_215, "1"), "small": tpch(120_515, "0.02"), "large": tpch(29_999_795, "5")},
    "text": {"default": text(2_000_000, "g1_2e6.parquet"), "small": text(100_000, "g1_100k.parquet")},
    "numbers": {"default": numbers(100_000_000), "small": numbers(1_000_000)},
}
"""Set -> size -> what it is. The small size is for tests; the large one for machines with memory and patience."""


def size_of(set_name: str, size: str, rows: int | None) -> Size:
    """The size called `size`, or one of any number of `rows` (of hits, g1 and numbers)."""
    sizes = SIZES[set_name]
    if rows is None:
        return sizes.get(size) or sizes["default"]
    for known in sizes.values():
        if known.rows == rows:
            return known
    made = {"hits": lambda: hits(rows, f"hits_{rows}.parquet"), "g1": lambda: g1(rows, f"g1_{rows}.parquet")}
    if set_name == "numbers":
        return numbers(rows)
    if set_name not in made:
        raise SystemExit(f"--rows does not apply to {set_name}: its sizes are {', '.join(SIZES[set_name])}")
    return made[set_name]()


@dataclasses.dataclass
class Query:
    """One query of a set."""

    name: str
    columns: list[str]
    """What it reads: decoding them is its floor. Empty for generated numbers."""
    tolerance: float
    """How far numbers may be from the expected ones, relative."""
    sql: str
    variants: dict[str, str]
    """Engine -> its own text, where its dialect forces one."""

    def text(self, engine: str) -> str:
        return self.variants.get(engine, self.sql)


ROUNDING = 1e-9
"""Sums of floats differ in their last digits with the order of addition."""


def load(set_name: str) -> list[Query]:
    """The queries of a set, in the file's order."""
    text = (FOLDER / f"{set_name}.sql").read_text()
    blocks = re.split(r"^-- query: ", text, flags=re.M)[1:]
    return [parse(block) for block in blocks]


def parse(block: str) -> Query:
    name, rest = block.split("\n", 1)
    texts = re.split(r"^-- only: (\w+).*$", rest, flags=re.M)
    columns = re.search(r"^-- columns: (.*)$", texts[0], re.M)
    tolerance = re.search(r"^-- tolerance: ([0-9.e-]+)", texts[0], re.M)
    return Query(
        name=name.strip(),
        columns=[column.strip() for column in columns[1].split(",")] if columns else [],
        tolerance=float(tolerance[1]) if tolerance else ROUNDING,
        sql=statement(texts[0]),
        variants={engine: statement(sql) for engine, sql in zip(texts[1::2], texts[2::2])},
    )


def statement(text: str) -> str:
    lines = [re.sub(r"\s*--.*$", "", line) for line in text.splitlines()]
    return "\n".join(lines).strip().rstrip(";")


def expected_path(set_name: str, rows: int) -> Path:
    return FOLDER / "expected" / f"{set_name}-{rows}.json"


def expected(set_name: str, rows: int) -> dict[str, list[list]]:
    """Query name -> the right rows; empty for a size that nobody has recorded."""
    path = expected_path(set_name, rows)
    return json.loads(path.read_text()) if path.exists() else {}
