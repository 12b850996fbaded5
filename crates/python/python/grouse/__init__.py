"""grouse: the GROUP BY engine. SQL over Parquet, CSV, JSON and Arrow data, from Python.

    import grouse
    grouse.sql("SELECT RegionID, count(*) AS n FROM 'hits.parquet' GROUP BY RegionID ORDER BY n DESC LIMIT 10").df()

`grouse.sql` runs on a default connection with all cores; `grouse.connect` makes one with options of its own. A query gives a
lazy `Relation`: it is planned at once (so mistakes are seen at once) and runs when rows are asked for.

Threads: connections and relations may be used from several threads at once; the interpreter lock is released while a query runs.
Signals: Ctrl-C stops the query within a tenth of a second and raises `KeyboardInterrupt`; the connection stays usable.
Fork: worker threads do not survive `os.fork`. In a forked child the default connection is made anew; a connection that was made
before the fork raises `grouse.InvalidError` there, so call `grouse.connect` in the child (or start processes by "spawn").

PEP 249: `grouse.connect().cursor()` is a cursor, `execute` and the fetch methods of a connection are its own.
"""

from grouse import _calls, _connection, _expression, _module, _parts, _relation, errors
from grouse._calls import *  # noqa: F403
from grouse._connection import Cursor
from grouse._connection.dbapi import *  # noqa: F403
from grouse._connection.dbapi import __all__ as _of_dbapi
from grouse._expression import *  # noqa: F403
from grouse._native import (
    Batch,
    Batches,
    Connection,
    Profile,
    Progress,
    Relation,
    Rows,
    __version__,
    connect,
    default_connection,
    sql,
)
from grouse._relation import Grouped
from grouse.errors import *  # noqa: F403

_parts.extend(Relation, _relation.PARTS)
_parts.extend(Connection, _connection.PARTS)
# PEP 249: code that has but a connection finds the exceptions there.
for _name in errors.__all__:
    setattr(Connection, _name, getattr(errors, _name))
_functions = _module.functions()
globals().update(_functions)


def load_ipython_extension(ipython: object) -> None:
    """What `%load_ext grouse` calls: `%sql` and `%%sql` are there then."""
    from grouse._notebook import load

    load(ipython)


__all__ = [
    "Batch",
    "Batches",
    "Connection",
    "Cursor",
    "Grouped",
    "Profile",
    "Progress",
    "Relation",
    "Rows",
    "__version__",
    "connect",
    "default_connection",
    "load_ipython_extension",
    "sql",
    *_calls.__all__,
    *_expression.__all__,
    *_of_dbapi,
    *_functions,
    *errors.__all__,
]
