"""`connect(safe=True)`: what statements reach then, and what the caller still gives them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import grouse


def test_statements_reach_no_file_no_address_and_no_variable(tmp_path: Path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    secret = pa.table({"x": [1]})
    with grouse.connect(safe=True) as db:
        for sql, option in [
            (f"SELECT * FROM '{tmp_path}/a.csv'", "allow_files"),
            (f"COPY (SELECT 1 AS x) TO '{tmp_path}/b.csv'", "allow_files"),
            ("SELECT * FROM 'http://127.0.0.1:9/a.csv'", "allow_network"),
            ("SET allow_files = on", "lock_options"),
            ("SELECT * FROM secret", "secret"),
        ]:
            with pytest.raises(grouse.Error, match=option):
                db.sql(sql).fetchall()
        db.register("given", secret)
        assert db.sql("SELECT sum(x) FROM given").fetchall() == [(1,)]
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_folders_are_opened_by_the_caller(tmp_path: Path):
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x\n1\n")
    for folders in (tmp_path / "in", str(tmp_path / "in"), [tmp_path / "in"]):
        with grouse.connect(safe=True, allowed_directories=folders) as db:
            assert db.sql(f"SELECT x FROM '{tmp_path}/in/a.csv'").fetchall() == [(1,)]
            with pytest.raises(grouse.IoError, match="allowed_directories"):
                db.sql(f"SELECT x FROM '{tmp_path}/out/a.csv'")


def test_options_that_close_take_booleans():
    with grouse.connect(allow_files=False, allow_network=False) as db:
        db.sql("SET threads = 1")
        with pytest.raises(grouse.InvalidError, match="allow_files"):
            db.sql("SET allow_files = true")
    with pytest.raises(grouse.TypeError, match="safe"):
        grouse.connect(safe="yes")
