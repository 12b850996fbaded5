"""Relations that are pickled, and those that cannot be."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pandas
import pytest

import grouse


def test_a_relation_over_files_is_pickled(con, tmp_path):
    con.sql("SELECT number AS n, number % 3 AS g FROM numbers(100)").to_parquet(tmp_path / "x.parquet")
    file = con.read_parquet(tmp_path / "x.parquet")
    relation = file.filter("n >= 50").set_alias("late").aggregate("g, count(*) AS c").order("g")
    again = pickle.loads(pickle.dumps(relation))
    assert again.fetchall() == relation.fetchall() and again.columns == ["g", "c"] and again.type == relation.type
    assert again.filter("g > 0").shape == (2, 2)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).fetchall())"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(relation), capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(relation.fetchall())


def test_what_is_of_this_process_is_not_pickled(con, tmp_path):
    frame = pandas.DataFrame({"a": [1]})  # noqa: F841
    con.sql("CREATE TABLE t (a INTEGER)")
    for relation in (
        con.sql("SELECT a FROM frame"),
        con.sql("SELECT ? AS a", [1]),
        con.sql("SELECT ? AS a", [1]).filter("a = 1"),
        con.sql("INSERT INTO t VALUES (1)"),
    ):
        with pytest.raises(grouse.TypeError, match="cannot be pickled"):
            pickle.dumps(relation)
    with pytest.raises(grouse.UnknownTableError):
        pickle.loads(pickle.dumps(con.table("t")))
