"""What the tests of clusters share: tables in files, and one cluster that none of them breaks."""

from __future__ import annotations

import pytest
from cluster_processes import Cluster, Settings

import grouse

# Rows of one file; there are four, so that each executor has some.
ROWS = 200_000


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A folder with rows.*.parquet and rows.csv, the same rows in both, and names.parquet."""
    folder = tmp_path_factory.mktemp("tables")
    rows = """
        SELECT number % 7 AS few, (number * 7919) % 50021 AS many, number AS each,
               CASE WHEN number % 11 = 0 THEN NULL ELSE 'name ' || CAST(number % 311 AS VARCHAR) END AS name,
               CAST(number % 1000 AS DOUBLE) / 8 AS x, CAST(number % 100 AS DECIMAL(12, 2)) AS d,
               DATE '2026-01-01' + CAST(number % 90 AS INTEGER) AS day
        FROM numbers({rows}) WHERE number % 4 = {part}
    """
    with grouse.connect(threads=2) as con:
        for part in range(4):
            con.sql(f"COPY ({rows.format(rows=4 * ROWS, part=part)}) TO '{folder}/rows.{part}.parquet'")
        con.sql(f"COPY (SELECT * FROM '{folder}/rows.*.parquet' WHERE each < 100000) TO '{folder}/rows.csv'")
        con.sql(f"COPY (SELECT number AS few, 'kind ' || CAST(number AS VARCHAR) AS kind FROM numbers(5)) TO '{folder}/names.parquet'")
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def wide(tmp_path_factory):
    """One executor that has several partitions of a stage as one task, and writes lz4."""
    settings = Settings({"ballista.shuffle.compression.codec": "lz4"})
    with Cluster(tmp_path_factory.mktemp("wide"), executors=1, vcores=3, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    """Tasks of one partition, rows fetched over the network and in small batches; what adaptive planning would change is off."""
    jobs = {
        "ballista.scheduler.max_partitions_per_task": "1",
        "ballista.shuffle.force_remote_read": "true",
        "ballista.shuffle.remote_read_prefer_flight": "true",
        "ballista.shuffle.compression.codec": "none",
        "ballista.shuffle.sort_based.batch_size": "1000",
        "ballista.planner.adaptive.enabled": "false",
    }
    with Cluster(tmp_path_factory.mktemp("narrow"), vcores=2, settings=Settings(jobs)) as cluster:
        yield cluster


@pytest.fixture
def each_remote(request):
    """The cluster that is asked for by its name."""
    with grouse.connect(request.getfixturevalue(request.param).address, threads=1) as con:
        yield con


@pytest.fixture
def remote(cluster):
    with grouse.connect(cluster.address, threads=1) as con:
        yield con


@pytest.fixture
def here():
    with grouse.connect(threads=2) as con:
        yield con


@pytest.fixture
def slow(tables) -> str:
    """A statement that computes for some seconds in its first stage, with few groups."""
    text = "md5(" * 12 + "name || CAST(each AS VARCHAR)" + ")" * 12
    return f"SELECT few, count(*) AS n, max({text}) AS m FROM '{tables}/rows.*.parquet' GROUP BY few"
