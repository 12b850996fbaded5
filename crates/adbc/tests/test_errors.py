"""Errors and ends through Python's driver manager: status and SQLSTATE, cancels, options, what is not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import adbc_driver_manager
import pytest
from adbc_driver_manager import AdbcStatusCode, dbapi

Status = AdbcStatusCode

STATEMENTS = [
    ("SELEC 1", dbapi.ProgrammingError, Status.INVALID_ARGUMENT, "42601"),
    ("SELECT nix FROM numbers(1)", dbapi.ProgrammingError, Status.NOT_FOUND, "42703"),
    ("SELECT * FROM nix", dbapi.ProgrammingError, Status.NOT_FOUND, "42P01"),
    ("SELECT nix(1)", dbapi.ProgrammingError, Status.NOT_FOUND, "42883"),
    ("SELECT * FROM '/nowhere/nix.parquet'", dbapi.ProgrammingError, Status.NOT_FOUND, "58P01"),
    ("SELECT 1 % sum(number - number) FROM numbers(2)", dbapi.DataError, Status.INVALID_DATA, "22012"),
    ("SELECT sum(9223372036854775807 - number) FROM numbers(3)", dbapi.DataError, Status.INVALID_DATA, "22003"),
    ("CREATE TABLE t (a INTEGER)", dbapi.ProgrammingError, Status.ALREADY_EXISTS, "42P07"),
    ("INSERT INTO t VALUES (1), (1)", dbapi.IntegrityError, Status.INTEGRITY, "23505"),
    ("INSERT INTO t VALUES (NULL)", dbapi.IntegrityError, Status.INTEGRITY, "23502"),
    ("CREATE INDEX i ON t (a)", dbapi.NotSupportedError, Status.NOT_IMPLEMENTED, "0A000"),
    ("SET nix = 1", dbapi.ProgrammingError, Status.INVALID_ARGUMENT, "22023"),
    ("SELECT ?", dbapi.ProgrammingError, Status.INVALID_ARGUMENT, "22023"),
]


@pytest.mark.parametrize(("sql", "kind", "status", "sqlstate"), STATEMENTS)
def test_status_and_sqlstate(cur, sql, kind, status, sqlstate):
    cur.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    with pytest.raises(kind) as failure:
        cur.execute(sql)
        cur.fetchall()
    assert (failure.value.status_code, failure.value.sqlstate) == (status, sqlstate)


def test_the_place_is_a_detail(cur):
    with pytest.raises(dbapi.ProgrammingError, match="line 2, column 5") as failure:
        cur.execute("SELECT\n    nix FROM numbers(1)")
    assert dict(failure.value.details) == {b"grouse.line": b"2", b"grouse.column": b"5"}


def test_an_error_in_the_middle_of_a_result(cur):
    cur.execute("SELECT 1 // (number::BIGINT - 5000000) FROM numbers(10000000)")
    with pytest.raises(Exception, match="division by zero"):
        cur.fetch_arrow_table()


def test_the_statement_goes_on_after_an_error(cur):
    with pytest.raises(dbapi.ProgrammingError):
        cur.execute("SELECT nix")
    cur.execute("SELECT 1")
    assert cur.fetchall() == [(1,)]


@pytest.mark.parametrize("whose", ["statement", "connection"])
def test_cancel_from_another_thread(con, endless, whose):
    """While execute waits for the first batch."""
    with con.cursor() as cursor:
        cancel = {"statement": cursor.adbc_cancel, "connection": con.adbc_cancel}[whose]
        timer = threading.Timer(0.3, cancel)
        timer.start()
        began = time.monotonic()
        with pytest.raises(dbapi.OperationalError, match="cancelled") as failure:
            cursor.execute(endless)
        timer.join()
        assert (failure.value.status_code, failure.value.sqlstate) == (Status.CANCELLED, "57014")
        assert time.monotonic() - began < 5
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_cancel_of_a_result_that_is_read(con):
    with con.cursor() as cursor:
        cursor.execute("SELECT number FROM numbers(100000000000)")
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        cursor.adbc_cancel()
        with pytest.raises(Exception, match="cancelled"):
            reader.read_all()


def test_cancel_of_ingestion_leaves_no_table(con):
    import pyarrow as pa

    schema = pa.schema([("n", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"n": list(range(1000))}, schema)

    def batches():
        while True:
            time.sleep(0.01)
            yield batch

    with con.cursor() as cursor:
        timer = threading.Timer(0.3, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError, match="cancelled"):
            cursor.adbc_ingest("t", pa.RecordBatchReader.from_batches(schema, batches()))
        timer.join()
        with pytest.raises(dbapi.ProgrammingError, match="'t' does not exist"):
            cursor.execute("SELECT * FROM t")


def test_a_cancel_of_nothing_ends_nothing(con):
    con.adbc_cancel()
    with con.cursor() as cursor:
        cursor.adbc_cancel()
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_memory_limit(connect):
    sql = "SELECT list(number) FROM numbers(50000000)"
    with connect(memory_limit="32MB").cursor() as cursor:
        with pytest.raises(dbapi.OperationalError, match="out of memory") as failure:
            cursor.execute(sql)
        assert failure.value.sqlstate == "53200"


def test_timeout(connect, endless):
    with connect(statement_timeout="200ms").cursor() as cursor:
        with pytest.raises(dbapi.OperationalError, match="statement_timeout") as failure:
            cursor.execute(endless)
        assert failure.value.status_code == Status.TIMEOUT


def test_options(connect):
    con = connect(grouse__batch_size="1000", memory_limit="1GB")
    assert con.adbc_connection.get_option("threads") == "2"
    assert con.adbc_connection.get_option_int("grouse.batch_size") == 1000
    con.adbc_connection.set_options(batch_size="2000")
    assert con.adbc_database.get_option_int("batch_size") == 2000
    with pytest.raises(dbapi.NotSupportedError, match="nix"):
        con.adbc_connection.set_options(nix="1")
    with pytest.raises(dbapi.ProgrammingError, match="threads"):
        connect(threads="many")
    with pytest.raises(dbapi.ProgrammingError, match="did you mean threads"):
        connect(thread="2")


def test_addresses(connect):
    with connect(uri=":memory:").cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
    with pytest.raises(dbapi.ProgrammingError, match="cluster"):
        connect(uri="postgresql://localhost")


def test_safe(connect, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    with connect(safe="true").cursor() as cursor:
        with pytest.raises(dbapi.Error):
            cursor.execute(f"SELECT * FROM '{tmp_path / 'x.csv'}'")
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_what_is_not_there(con, library):
    with pytest.raises(dbapi.NotSupportedError, match="transactions"):
        con.adbc_connection.set_autocommit(False)
    with pytest.raises(dbapi.NotSupportedError, match="transactions"):
        con.adbc_connection.commit()
    with con.cursor() as cursor:
        with pytest.raises(dbapi.NotSupportedError, match="Substrait"):
            cursor.execute(b"plan")
        with pytest.raises(dbapi.NotSupportedError, match="partitioned"):
            cursor.adbc_execute_partitions("SELECT 1")
    with pytest.raises(dbapi.NotSupportedError, match="statistics"):
        con.adbc_get_statistics()
    with pytest.warns(adbc_driver_manager.Warning, match="autocommit"):
        dbapi.connect(driver=str(library)).close()


FOLDER = Path(__file__).parents[1]


def test_a_manifest_names_the_library(library: Path, tmp_path, monkeypatch):
    """As the one that `install.sh` puts where driver managers look for drivers."""
    text = (FOLDER / "grouse.toml").read_text()
    (tmp_path / "grouse.toml").write_text(text.replace("libadbc_driver_grouse.so", str(library)))
    monkeypatch.setenv("ADBC_DRIVER_PATH", str(tmp_path))
    with dbapi.connect(driver="grouse", autocommit=True) as con, con.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for Unix")
def test_the_archive_installs_itself(tmp_path):
    archive, to = tmp_path / "archive", tmp_path / "a & b" / "drivers"
    archive.mkdir()
    for name in ("grouse.toml", "install.sh"):
        shutil.copy(FOLDER / name, archive)
    (archive / "libadbc_driver_grouse.so").write_bytes(b"a library")
    for _ in range(2):
        subprocess.run([archive / "install.sh", to], check=True, stdout=subprocess.DEVNULL)
    manifest = tomllib.loads((to / "grouse.toml").read_text())
    assert manifest["Driver"]["shared"]["linux_amd64"] == str(to / "libadbc_driver_grouse.so")
    assert (to / "libadbc_driver_grouse.so").read_bytes() == b"a library"
    assert sorted(path.name for path in to.iterdir()) == ["grouse.toml", "libadbc_driver_grouse.so"]
