"""Disks without room, files that executors do not have, object stores: what ends, and what is said."""

from __future__ import annotations

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from cluster_processes import Cluster, Settings, explained
from test_loopback import assert_same

import grouse

FAULTS = Path(__file__).parents[3] / "tests/src/write_faults/faults.c"


@pytest.fixture(scope="module")
def faults(tmp_path_factory) -> Path:
    """A library that has calls fail which write to files."""
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(FAULTS), "-ldl"], check=True)
    return library


def full(faults: Path, **more: str) -> Settings:
    """Executors whose disks have no room from their first call of write on, or at that one alone."""
    return Settings(environment={"LD_PRELOAD": str(faults), "FAULT_CALL": "write", "FAULT_AT": "1", "FAULT_KIND": "ENOSPC", **more})


EXCHANGE = "SELECT many, count(*) AS n, sum(x) AS s FROM '{tables}/rows.*.parquet' GROUP BY many"
ROWS = "SELECT each, name FROM '{tables}/rows.*.parquet' WHERE each % 3 = 0"


@pytest.mark.parametrize("sql", [EXCHANGE, ROWS])
def test_a_disk_that_is_full_is_told(tmp_path, tables, faults, sql):
    settings = full(faults, FAULT_ON="1")
    with Cluster(tmp_path, settings=settings) as cluster, grouse.connect(cluster.address, threads=1) as con:
        with pytest.raises(grouse.IoError, match="no space is left on the disk of this executor") as refused:
            con.sql(sql.format(tables=tables)).fetchall()
        assert str(tmp_path / "work") in str(refused.value)
        assert "parquet" not in str(refused.value)
        assert cluster.is_clean_within(), cluster.left()


@pytest.mark.parametrize("sql", [EXCHANGE, ROWS])
def test_a_task_is_tried_again_where_a_disk_was_full(tmp_path, here, tables, faults, sql):
    sql = sql.format(tables=tables)
    with Cluster(tmp_path, settings=full(faults)) as cluster, grouse.connect(cluster.address, threads=1) as con:
        assert_same(con.sql(sql).fetchall(), here.sql(sql).fetchall(), ordered=False)
        assert cluster.is_clean_within(), cluster.left()


def test_a_file_that_one_executor_may_not_read_is_named(tmp_path, tables):
    (tmp_path / "elsewhere").mkdir()
    sql = f"SELECT few, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY few"
    with Cluster(tmp_path, executors=1) as cluster, grouse.connect(cluster.address, threads=1) as con:
        cluster.settings.executors = ["--allowed-directories", str(tmp_path / "elsewhere")]
        cluster.add_executor()
        cluster.wait_for(2)
        with pytest.raises(grouse.Error, match=r"rows\.\d\.parquet"):
            con.sql(sql).fetchall()
        assert cluster.is_clean_within(), cluster.left()


class Bucket(BaseHTTPRequestHandler):
    """S3 as far as readers need it: HEAD and GET of a range, ListObjectsV2."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    asked: set[str]

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        address = urlsplit(self.path)
        path, query = unquote(address.path).strip("/"), parse_qs(address.query)
        self.asked.add(self.headers.get("Authorization", ""))
        if "list-type" in query:
            return self.sends(200, self.listed(query.get("prefix", [""])[0]), {"Content-Type": "application/xml"})
        content = self.files.get(path.removeprefix("bucket/"))
        if content is None:
            return self.sends(404, b"", {})
        about = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT", "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range")
        if not wanted:
            return self.sends(200, content, about)
        first, last = wanted.removeprefix("bytes=").split("-")
        begin = int(first) if first else len(content) - int(last)
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        self.sends(206, content[begin:end], {**about, "Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"})

    def listed(self, prefix: str) -> bytes:
        about = "<LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>\"1\"</ETag>"
        found = {name: content for name, content in self.files.items() if name.startswith(prefix)}
        contents = "".join(f"<Contents><Key>{name}</Key>{about}<Size>{len(content)}</Size></Contents>" for name, content in found.items())
        return f"<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode()

    def sends(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(tables):
    """The address of a store whose bucket has rows/*.parquet, and who has asked it."""
    files = {f"rows/{part}.parquet": (tables / f"rows.{part}.parquet").read_bytes() for part in range(4)}
    handler = type("Handler", (Bucket,), {"files": files, "asked": set()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler.asked
    server.shutdown()
    server.server_close()


def test_an_object_store_is_read_by_executors_with_their_own_credentials(tmp_path, here, tables, bucket, monkeypatch):
    address, asked = bucket
    own = {"AWS_ACCESS_KEY_ID": "executor", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
    settings = Settings(executors=["--set", f"s3_endpoint={address}"], environment=own)
    for name, value in {**own, "AWS_ACCESS_KEY_ID": "client"}.items():
        monkeypatch.setenv(name, value)
    sql = "SELECT few, count(*) AS n, sum(each) AS s FROM '{}' GROUP BY few"
    with Cluster(tmp_path, settings=settings) as cluster, grouse.connect(cluster.address, threads=1, s3_endpoint=address) as con:
        remote = sql.format("s3://bucket/rows/*.parquet")
        assert "ClusterExec" in explained(con, remote)
        assert_same(con.sql(remote).fetchall(), here.sql(sql.format(f"{tables}/rows.*.parquet")).fetchall(), ordered=False)
        logs = cluster.logs()
    who = {part.split("/")[0].rpartition("=")[2] for part in asked}
    assert who == {"client", "executor"}, asked
    assert "secret" not in logs and "executor/2026" not in logs
