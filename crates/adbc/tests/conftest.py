"""What all tests of the ADBC driver share: where the library is, a database, a query that runs until it is stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from adbc_driver_manager import dbapi

ENDINGS = {"darwin": ".dylib", "win32": ".dll"}
NAME = ("" if sys.platform == "win32" else "lib") + "adbc_driver_grouse" + ENDINGS.get(sys.platform, ".so")

# Next to nothing passes the filter: minutes of work on any machine, in little memory, and no batch before the end.
ENDLESS = "SELECT count(*) AS n FROM numbers(100000000000) WHERE number * 7 % 1000000007 = 3"


def driver_library() -> Path:
    """The library that `make build` has made."""
    target = os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache" / "grouse" / "target"
    return Path(target) / "release" / NAME


@pytest.fixture(scope="session")
def library() -> Path:
    path = driver_library()
    assert path.exists(), f"{path} is not there: make build makes it"
    return path


@pytest.fixture
def connect(library: Path):
    """Opens databases with these options, and closes them at the end."""
    opened = []

    def open_database(**options: str) -> dbapi.Connection:
        options = {"grouse.threads": "2"} | {name.replace("__", "."): value for name, value in options.items()}
        opened.append(dbapi.connect(driver=str(library), db_kwargs=options, autocommit=True))
        return opened[-1]

    yield open_database
    for connection in opened:
        connection.close()


@pytest.fixture
def con(connect) -> dbapi.Connection:
    return connect()


@pytest.fixture
def cur(con: dbapi.Connection) -> Iterator[dbapi.Cursor]:
    with con.cursor() as cursor:
        yield cursor


@pytest.fixture
def endless() -> str:
    return ENDLESS
