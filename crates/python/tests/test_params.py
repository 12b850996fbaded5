"""Parameters wherever an expression may stand."""

from __future__ import annotations

import datetime as dt

import pytest

import grouse


@pytest.fixture
def rows(con):
    con.sql("CREATE TABLE t AS SELECT * FROM (VALUES ('a', 1), ('a', 5), ('b', 2), (NULL, 9)) AS v(k, n)")
    return con


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("SELECT k, count(*) FILTER (WHERE n > ?) AS c FROM t GROUP BY k ORDER BY k", [2], [("a", 1), ("b", 0), (None, 1)]),
        ("SELECT array_agg(n ORDER BY n * ?) FROM t", [-1], [([9, 5, 2, 1],)]),
        ("SELECT k, sum(n * $x) AS s FROM t GROUP BY k HAVING sum(n * $x) > $y ORDER BY k", {"x": 2, "y": 4}, [("a", 12), (None, 18)]),
        ("SELECT n FROM t ORDER BY abs(n - ?) LIMIT ?", [5, 1], [(5,)]),
        ("SELECT n FROM t ORDER BY n LIMIT ? OFFSET ?", [1, 2], [(5,)]),
        ("SELECT sum(CASE WHEN n > $1 THEN $2 ELSE 0 END) FROM t", [1, 10], [(30,)]),
        ("SELECT string_agg(k, ? ORDER BY n) FROM t", ["-"], [("a-b-a",)]),
        ("SELECT n % ? AS m, count(*) FROM t GROUP BY n % ? ORDER BY 1", [2, 2], [(0, 1), (1, 3)]),
        ("SELECT count(*) FILTER (WHERE k = ?), count(*) FILTER (WHERE k = ?) FROM t", ["a", "b"], [(2, 1)]),
        ("SELECT max(n) FILTER (WHERE n < ?) OVER (ORDER BY n) FROM t ORDER BY 1 LIMIT 1", [3], [(1,)]),
        ("SELECT count(*) FILTER (WHERE n IN (SELECT n FROM t WHERE n > ?)) FROM t", [4], [(2,)]),
        ("SELECT n FROM t WHERE n IN ? ORDER BY n", [[1, 9, 77]], [(1,), (9,)]),
        ("SELECT n FROM t WHERE n IN $1 AND k IN $2", [[1, 9], ["a"]], [(1,)]),
        ("SELECT n FROM t WHERE n NOT IN ? ORDER BY n", [[1, 9]], [(2,), (5,)]),
        ("SELECT n FROM t WHERE n NOT IN $names ORDER BY n", {"names": (1, 9)}, [(2,), (5,)]),
        ("SELECT count(*) FROM t WHERE n IN ?", [[]], [(0,)]),
        ("SELECT count(*) FROM t WHERE k NOT IN ?", [[]], [(4,)]),
        ("SELECT count(*) FROM t WHERE n NOT IN ?", [[1, None]], [(0,)]),
        ("SELECT count(*) FILTER (WHERE k IN ?) FROM t", [["a", "b"]], [(3,)]),
        ("SELECT DATE '2024-01-01' IN ?", [[dt.date(2024, 1, 1)]], [(True,)]),
    ],
)
def test_parameters_stand_anywhere(rows, text, params, expected):
    assert rows.sql(text, params).fetchall() == expected


def test_an_unused_list_is_told(rows):
    with pytest.raises(grouse.InvalidError, match=r"\$2"):
        rows.sql("SELECT n FROM t WHERE n IN ?", [[1], [2]])
