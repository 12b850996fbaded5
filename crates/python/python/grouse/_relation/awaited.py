"""Results of a relation for asyncio: `await relation.arrow_async()`.

In: a relation. Out: its rows, from a run of their own, awaited; the loop goes on meanwhile.
Invariant: a task that is cancelled stops its query, and no other one; rows keep the query's order. Needs pyarrow.
Not here: the same without waiting (results.py, the native module).
"""

from __future__ import annotations

from grouse._native import Relation

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ROWS_AT_ONCE = 10_000


class Awaited:
    """What `Relation` has of this file."""

    async def arrow_async(self: Relation) -> Any:
        """The result as a pyarrow Table. Other tasks run meanwhile; a cancelled one stops its query."""
        # Neither is imported before somebody waits: they take as long as all of this package.
        import asyncio

        import pyarrow

        batches = await asyncio.to_thread(self.to_batches)
        try:
            parts = await asyncio.to_thread(list, batches)
        except asyncio.CancelledError:
            batches.close()
            raise
        return pyarrow.Table.from_batches(parts, pyarrow.schema(batches))

    async def df_async(self: Relation) -> Any:
        """The result as a pandas DataFrame, as `arrow_async`."""
        return await _converted(self, lambda held: held.df())

    async def pl_async(self: Relation) -> Any:
        """The result as a polars DataFrame, as `arrow_async`."""
        return await _converted(self, lambda held: held.pl())

    async def fetchall_async(self: Relation) -> list[tuple[Any, ...]]:
        """All rows as a list of tuples, as `arrow_async`."""
        return await _converted(self, _rows)


async def _converted(relation: Relation, convert: Callable[[Relation], Any]) -> Any:
    """The rows, made into something else by the same executor as the query, so that the loop goes on."""
    import asyncio

    table = await relation.arrow_async()
    # As a stream, since the batches of a table are read by several workers, and their order is lost.
    held = {"relation 1": table.to_reader()}
    return await asyncio.to_thread(lambda: convert(relation._plan('SELECT * FROM "relation 1"', held)))


def _rows(held: Relation) -> list[tuple[Any, ...]]:
    """All rows, some at a time: while the native module makes them, no other thread of Python runs."""
    rows: list[tuple[Any, ...]] = []
    while part := held.fetchmany(ROWS_AT_ONCE):
        rows += part
    return rows
