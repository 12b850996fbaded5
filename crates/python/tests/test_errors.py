"""Exceptions: one class per variant of the engine's enum, the builtins they also are, what they carry."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grouse

ENUM = Path(__file__).resolve().parents[2] / "engine" / "src" / "error" / "mod.rs"

# `InternalError` is both PEP 249's and the engine's.
OF_PEP_249 = (
    "DataError",
    "DatabaseError",
    "IntegrityError",
    "InterfaceError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
)


def test_classes_mirror_the_engines_enum():
    body = re.search(r"pub enum Error \{(.*?)\n\}", ENUM.read_text(), re.S)[1]
    variants = set(re.findall(r"^    (\w+)(?: \{|\(|,)", body, re.M))
    variants.remove("UnsupportedClause")  # an UnsupportedError with its place
    variants.remove("Placed")  # any other with its place
    classes = {name for name in grouse.errors.__all__ if name not in ("Error", "FileNotFoundError", *OF_PEP_249)}
    assert classes == {f"{variant}Error" for variant in variants}
    for name in classes:
        assert issubclass(getattr(grouse, name), grouse.DatabaseError), name


def test_every_class_is_an_error_and_says_where_it_is_from():
    for name in grouse.errors.__all__:
        class_ = getattr(grouse, name)
        assert issubclass(class_, grouse.Error) or name == "Warning"
        assert class_.__module__ == "grouse" and class_.__doc__


@pytest.mark.parametrize(
    ("text", "class_", "builtin"),
    [
        ("SELEC 1", grouse.SyntaxError, ValueError),
        ("SELECT nosuch FROM numbers(1)", grouse.UnknownColumnError, LookupError),
        ("SELECT number FROM numbers(1) a, numbers(1) b", grouse.AmbiguousColumnError, LookupError),
        ("SELECT * FROM nosuch", grouse.UnknownTableError, LookupError),
        ("SELECT nosuch(1)", grouse.UnknownFunctionError, LookupError),
        ("SELECT * FROM '/no/such/file.parquet'", grouse.FileNotFoundError, builtins.FileNotFoundError),
        ("SET threads = 'many'", grouse.InvalidError, ValueError),
        ("SELECT CAST('x' AS INT)", grouse.TypeError, builtins.TypeError),
        ("SELECT 1 / number FROM numbers(1)", grouse.DivideByZeroError, ZeroDivisionError),
    ],
)
def test_kinds(con, text, class_, builtin):
    with pytest.raises(class_) as caught:
        con.sql(text).fetchall()
    assert isinstance(caught.value, builtin)
    assert str(caught.value)


def test_positions_and_near_names(con):
    with pytest.raises(grouse.UnknownColumnError) as caught:
        con.sql("SELECT\n  numbr FROM numbers(1)")
    error = caught.value
    assert error.name == "numbr" and error.nearest == ["number"]
    assert (error.line, error.column) == (2, 3)
    with pytest.raises(grouse.SyntaxError) as caught:
        con.sql("SELECT 1;\nSELECT 1 +;")
    assert caught.value.line == 2


def test_files(con, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is no parquet PAR1")
    with pytest.raises(grouse.FormatError) as caught:
        con.sql(f"SELECT * FROM '{broken}'").fetchall()
    assert "broken.parquet" in caught.value.path
    with pytest.raises(OSError):
        con.sql("SELECT * FROM '/no/such/*.csv'")


def test_pages_are_held_against_their_checksums(con, tmp_path):
    table = pa.table({"k": list(range(20_000)), "s": [f"text {at % 97}" for at in range(20_000)]})
    path = tmp_path / "sums.parquet"
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    sums = f"SELECT sum(k), count(DISTINCT s) FROM '{path}'"
    assert con.sql(sums).fetchall() == [(199_990_000, 97)]
    whole = path.read_bytes()
    values = whole.index((12_345).to_bytes(8, "little")), whole.rindex(b"text 13")
    for at in values:
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(grouse.FormatError) as caught:
            con.sql(sums).fetchall()
        assert "sums.parquet" in str(caught.value)


def test_out_of_memory_tells_the_figures():
    with grouse.connect(threads=2, memory_limit="20MB") as small:
        relation = small.sql("SELECT array_agg(number) FROM numbers(20000000)")
        with pytest.raises(grouse.OutOfMemoryError) as caught:
            relation.fetchall()
        assert isinstance(caught.value, MemoryError)
        assert caught.value.limit_bytes == 20_000_000 and caught.value.asked_bytes > 0 and caught.value.operator
        assert small.sql("SELECT 1").fetchall() == [(1,)], "the connection stays usable"


def test_overflow(con):
    with pytest.raises(grouse.OverflowError) as caught:
        con.sql("SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS t(x)").fetchall()
    assert isinstance(caught.value, builtins.OverflowError)
    assert "sum" in caught.value.aggregate


def test_options():
    with grouse.connect(threads=3, memory_limit=1 << 30, temp_directory=Path("/tmp"), batch_size=1000) as con:
        shown = {name: con.sql(f"SHOW {name}").fetchone()[1] for name in ("threads", "memory_limit", "temp_directory", "batch_size")}
    assert shown == {"threads": "3", "memory_limit": str(1 << 30), "temp_directory": "/tmp", "batch_size": "1000"}
    for wrong in ({"threads": -1}, {"memory_limit": "a lot"}, {"memory_limit": "2MB"}, {"no_such_option": 1}):
        with pytest.raises(grouse.InvalidError) as caught:
            grouse.connect(**wrong)
        assert caught.value.name == next(iter(wrong))
    with pytest.raises(grouse.TypeError):
        grouse.connect(threads=object())
