"""Processes that die while a statement runs: the answer is right or the error says what happened, and nothing is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from cluster_processes import Cluster
from test_loopback import assert_same

import grouse


@pytest.fixture
def broken(tmp_path):
    """A cluster that the test may break."""
    with Cluster(tmp_path) as cluster:
        yield cluster


class Statement(threading.Thread):
    """A statement that runs beside the test."""

    def __init__(self, address: str, sql: str, progress=None) -> None:
        super().__init__(daemon=True)
        self.con, self.sql = grouse.connect(address, threads=1, progress=progress), sql
        self.rows: list[tuple] | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.rows = self.con.sql(self.sql).fetchall()
        except BaseException as error:
            self.error = error

    def ended(self, within_s: float = 45) -> Statement:
        self.join(within_s)
        assert not self.is_alive(), "it hangs"
        self.con.close()
        return self


def computing(cluster: Cluster) -> None:
    """Waits until both executors compute."""
    end = time.monotonic() + 20
    before = [executor.cpu_s() for executor in cluster.executors]
    while time.monotonic() < end:
        if all(executor.cpu_s() - at > 0.3 for executor, at in zip(cluster.executors, before, strict=True)):
            return
        time.sleep(0.05)
    raise AssertionError("the executors do not compute")


def test_an_executor_is_lost_in_the_map_stage(broken, here, slow):
    statement = Statement(broken.address, slow)
    computing(broken)
    broken.executors[0].kill()
    statement.ended()
    assert statement.error is None, statement.error
    assert_same(statement.rows, here.sql(slow).fetchall(), ordered=False)
    assert broken.is_clean_within(), broken.left()


def test_an_executor_is_lost_while_its_results_are_read(broken, here, tables):
    text = "md5(" * 12 + "CAST(each AS VARCHAR)" + ")" * 12
    inner = f"SELECT each, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY each"
    sql = f"SELECT each % 5 AS k, max({text}) AS m, sum(n) AS n FROM ({inner}) GROUP BY 1"
    killed = threading.Event()

    def after_the_first_stage(progress: grouse.Progress) -> None:
        if progress.input_share and not killed.is_set():
            killed.set()
            broken.executors[1].kill()

    statement = Statement(broken.address, sql, after_the_first_stage).ended()
    assert killed.is_set(), "it was over before a stage was seen to be"
    # Rows of a stage that began anew would count twice: no rows, or the right ones.
    if statement.error is None:
        assert_same(statement.rows, here.sql(sql).fetchall(), ordered=False)
    else:
        assert "an executor was lost" in str(statement.error)


def test_an_executor_that_hangs_is_lost(broken, here, slow):
    statement = Statement(broken.address, slow)
    computing(broken)
    hung = broken.executors[0].child
    hung.send_signal(signal.SIGSTOP)
    try:
        statement.ended()
    finally:
        hung.send_signal(signal.SIGCONT)
    assert statement.error is None, statement.error
    assert_same(statement.rows, here.sql(slow).fetchall(), ordered=False)


def test_all_executors_are_lost(broken, slow):
    statement = Statement(broken.address, slow)
    computing(broken)
    for executor in broken.executors:
        executor.kill()
    statement.ended()
    assert isinstance(statement.error, grouse.Error), statement.rows
    # The next one clears up after both of them, and the cluster goes on.
    for number in range(2):
        folder = broken.work_folder(number)
        assert len(list(folder.iterdir())) == 1
    for executor in broken.executors:
        executor.end()
    broken.executors = []
    broken.add_executor()
    broken.wait_for(1)
    assert len(list(broken.work_folder(0).iterdir())) == 1


def test_the_scheduler_is_lost(broken, slow):
    statement = Statement(broken.address, slow)
    computing(broken)
    broken.scheduler.kill()
    statement.ended()
    assert isinstance(statement.error, grouse.IoError), statement.error
    assert "scheduler" in str(statement.error)
    for executor in broken.executors:
        executor.child.wait(40)
    assert not any(path for number in range(2) for path in broken.work_folder(number).iterdir())


def test_an_interrupt_ends_the_executors_work(cluster, slow):
    statement = Statement(cluster.address, slow)
    computing(cluster)
    statement.con.interrupt()
    statement.ended(5)
    assert isinstance(statement.error, grouse.CancelledError)
    assert cluster.idle_after(), cluster.logs()
    assert cluster.is_clean_within(), cluster.left()


def test_a_killed_client_ends_the_executors_work(cluster, slow):
    script = "import sys, grouse; grouse.connect(sys.argv[1], threads=1).sql(sys.argv[2]).fetchall()"
    client = subprocess.Popen([sys.executable, "-c", script, cluster.address, slow], stdin=subprocess.DEVNULL)
    computing(cluster)
    client.kill()
    client.wait(10)
    assert cluster.idle_after(), cluster.logs()
    assert cluster.is_clean_within(), cluster.left()


def test_want_of_memory_is_told_as_it_is(tmp_path, tables):
    sql = f"SELECT array_agg(name || name || name || CAST(each AS VARCHAR)) AS a FROM '{tables}/rows.*.parquet'"
    with Cluster(tmp_path, executors=1, memory="16MB") as cluster, grouse.connect(cluster.address, threads=1) as con:
        with pytest.raises(grouse.OutOfMemoryError) as refused:
            con.sql(sql).fetchall()
        assert 0 < refused.value.limit_bytes <= 16_000_000
        assert con.sql(f"SELECT few, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY few").fetchall()
        assert cluster.is_clean_within(), cluster.left()


def test_a_missing_file_is_named(broken, tables, tmp_path):
    part = tmp_path / "part.parquet"
    with grouse.connect(broken.address, threads=1) as con:
        con.sql(f"COPY (SELECT * FROM '{tables}/rows.0.parquet') TO '{part}'")
        relation = con.sql(f"SELECT few, count(*) FROM '{part}' GROUP BY few")
        part.unlink()
        with pytest.raises(grouse.IoError, match=r"part\.parquet"):
            relation.fetchall()
