"""What all tests of the Python package share: a connection, and a query that runs until it is stopped."""

from __future__ import annotations

import signal

import pytest

import grouse

# A shell starts its background jobs with Ctrl-C ignored, and Python then leaves it so: `make test &` would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Next to nothing passes the filter: minutes of work on any machine, in little memory, and no batch before the end.
ENDLESS = "SELECT count(*) AS n FROM numbers(100000000000) WHERE number * 7 % 1000000007 = 3"


@pytest.fixture
def con():
    with grouse.connect(threads=2) as connection:
        yield connection


@pytest.fixture
def endless() -> str:
    return ENDLESS
