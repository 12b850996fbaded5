"""A cluster with certificates: it answers those who have one of its authority, and nobody else, at each of its ports."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from cluster_processes import Cluster

import grouse


def openssl(*arguments: str) -> None:
    try:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        pytest.fail("openssl makes the certificates of this test: install it")


def authority(folder: Path) -> Path:
    """A folder with a certificate, its key and the authority that signed it."""
    folder.mkdir()
    key, ca, request = str(folder / "ca.key"), str(folder / "ca.pem"), str(folder / "request")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *new, "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=authority")
    openssl("req", *new, "-keyout", str(folder / "key.pem"), "-out", request, "-subj", "/CN=node")
    names = folder / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    signed = ["-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", "2", "-extfile", str(names)]
    openssl("x509", "-req", "-in", request, *signed, "-out", str(folder / "cert.pem"))
    return folder


def answers(port: int, context: ssl.SSLContext | None) -> bool:
    """Whether a server speaks HTTP/2 with such a client."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            channel = context.wrap_socket(plain, server_hostname="localhost") if context else plain
            with channel:
                channel.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
                # The first frame of a server is its settings.
                answer = channel.recv(9)
                return len(answer) == 9 and answer[3] == 4
    except OSError:
        return False


def context(folder: Path | None, ca: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(ca))
    made.set_alpn_protocols(["h2"])
    if folder:
        made.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return made


def test_only_those_with_certificates_are_answered(tmp_path, tables):
    ours, others = authority(tmp_path / "ours"), authority(tmp_path / "others")
    folder = tmp_path / "cluster"
    folder.mkdir()
    sql = f"SELECT few, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY few"
    with Cluster(folder, tls=ours) as cluster:
        with grouse.connect(cluster.address, threads=1) as con:
            assert len(con.sql(sql).fetchall()) == 7
        plain = cluster.address.split("?")[0]
        for address in [plain, f"{plain}?tls={others}"]:
            with grouse.connect(address, threads=1) as con, pytest.raises(grouse.IoError):
                con.sql(sql).fetchall()
        ca = ours / "ca.pem"
        for port in [cluster.scheduler.port, *(executor.port for executor in cluster.executors)]:
            assert answers(port, context(ours, ca))
            assert not answers(port, None)
            assert not answers(port, context(None, ca))
            assert not answers(port, context(others, ca))


def test_certificates_that_are_not_there_are_named(tmp_path):
    with grouse.connect(f"df://127.0.0.1:9?tls={tmp_path}", threads=1) as con:
        with pytest.raises(grouse.IoError, match=r"cert\.pem"):
            con.sql("SELECT 1").fetchall()
