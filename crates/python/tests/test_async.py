"""Relations for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import grouse


def test_results_are_awaited(con):
    relation = con.sql("SELECT number AS n, 'x' || number AS s FROM numbers(20000) ORDER BY n")

    async def both():
        return await asyncio.gather(relation.arrow_async(), relation.df_async(), relation.pl_async(), relation.fetchall_async())

    table, frame, polars, rows = asyncio.run(both())
    assert table.num_rows == len(frame) == len(polars) == len(rows) == 20000
    assert rows[:2] == relation.fetchall()[:2] == [(0, "x0"), (1, "x1")]
    assert frame.equals(relation.df()) and polars.equals(relation.pl())
    assert asyncio.run(con.sql("SELECT 1 AS a WHERE false").arrow_async()).schema.names == ["a"]


def test_the_loop_goes_on(con, endless):
    ticks = []

    async def count():
        task = asyncio.create_task(con.sql(endless).arrow_async())
        for _ in range(10):
            await asyncio.sleep(0.01)
            ticks.append(1)
        assert not task.done()
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    assert asyncio.run(count()) < 5 and len(ticks) == 10
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_errors_are_awaited(con):
    with pytest.raises(grouse.DivideByZeroError):
        asyncio.run(con.sql("SELECT 1 // (number - number) AS x FROM numbers(3)").arrow_async())


@pytest.mark.parametrize("name", ["df", "pl", "fetchall"])
def test_rows_are_converted_away_from_the_loop(con, monkeypatch, name):
    threads = []
    kind = type(con.sql("SELECT 1"))
    plan = kind._plan

    def noted(self, *given):
        threads.append(threading.current_thread())
        return plan(self, *given)

    monkeypatch.setattr(kind, "_plan", noted)
    assert len(asyncio.run(getattr(con.sql("SELECT number AS n FROM numbers(25000)"), f"{name}_async")())) == 25000
    assert threads and threading.main_thread() not in threads


def test_rows_keep_the_order_of_the_query(con):
    relation = con.sql("SELECT number AS n FROM numbers(300000) ORDER BY n DESC")
    expected = list(range(299999, -1, -1))

    async def all_of_them():
        return await asyncio.gather(relation.df_async(), relation.pl_async(), relation.fetchall_async())

    frame, polars, rows = asyncio.run(all_of_them())
    assert frame["n"].tolist() == polars["n"].to_list() == [row[0] for row in rows] == expected
