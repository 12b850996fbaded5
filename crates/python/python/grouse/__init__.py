"""grouse: the GROUP BY engine. SQL over Parquet, CSV, JSON and Arrow data, from Python.

    import grouse
    grouse.sql("SELECT RegionID, count(*) AS n FROM 'hits.parquet' GROUP BY RegionID ORDER BY n DESC LIMIT 10").df()

`grouse.sql` runs on a default connection with all cores; `grouse.connect` makes one with options of its own. A query gives a
lazy `Relation`: it is planned at once (so mistakes are seen at once) and runs when rows are asked for.

Threads: connections and relations may be used from several threads at once; the interpreter lock is released while a query runs.
Signals: Ctrl-C stops the query within a tenth of a second and raises `KeyboardInterrupt`; the connection stays usable.
Fork: worker threads do not survive `os.fork`. In a forked child the default connection is made anew; a connection that was made
before the fork raises `grouse.InvalidError` there, so call `grouse.connect` in the child (or start processes by "spawn").
"""

from grouse import errors
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
from grouse.errors import *  # noqa: F403

__all__ = [
    "Batch",
    "Batches",
    "Connection",
    "Profile",
    "Progress",
    "Relation",
    "Rows",
    "__version__",
    "connect",
    "default_connection",
    "sql",
    *errors.__all__,
]
