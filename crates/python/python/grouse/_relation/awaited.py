"""Results of a relation for asyncio: `await relation.arrow_async()`.

In: a relation. Out: its rows, from a run of their own, awaited; the loop goes on meanwhile.
Invariant: a task that is cancelled stops its query, and no other one. Needs pyarrow.
Not here: the same without waiting (results.py, the native module).
"""

from __future__ import annotations

from grouse._native import Relation

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
        return (await _held(self)).df()

    async def pl_async(self: Relation) -> Any:
        """The result as a polars DataFrame, as `arrow_async`."""
        return (await _held(self)).pl()

    async def fetchall_async(self: Relation) -> list[tuple[Any, ...]]:
        """All rows as a list of tuples, as `arrow_async`."""
        return (await _held(self)).fetchall()


async def _held(relation: Relation) -> Relation:
    """A relation over the rows, which are there."""
    table = await relation.arrow_async()
    return relation._plan('SELECT * FROM "relation 1"', {"relation 1": table})
