"""Columns of pyarrow as arrays of numpy.

In: a chunked array. Out: an array; a masked one where there is NULL.
Invariant: values keep their type: an integer does not become a float because of a NULL beside it.
Not here: which columns.
"""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
from pyarrow import compute, types

from grouse.errors import TypeError


def array_of(column: pyarrow.ChunkedArray) -> Any:
    """The column's values."""
    array = _whole(column)
    plain = _plain(array)
    if array.null_count == 0:
        return plain
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return numpy.ma.MaskedArray(plain, mask=missing)


def numbers_of(name: str, column: pyarrow.ChunkedArray) -> Any:
    """The column's values, all of which have to be numbers. The array can be written to."""
    array = _whole(column)
    kind = array.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise TypeError(f"column '{name}' is of type {kind}; a tensor has numbers or booleans: cast it, or leave it out")
    if array.null_count > 0:
        raise TypeError(f"column '{name}' has NULL, for which a tensor has no value: coalesce() it, or filter it out")
    numbers = array.to_numpy(zero_copy_only=False)
    return numbers if numbers.flags.writeable else numbers.copy()


def _whole(column: pyarrow.ChunkedArray) -> Any:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):
        array = pyarrow.concat_arrays(array.chunks) if array.num_chunks else pyarrow.array([], array.type)
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _plain(array: pyarrow.Array) -> Any:
    kind = array.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        filled = compute.fill_null(array, False if types.is_boolean(kind) else 0) if array.null_count else array
        return filled.to_numpy(zero_copy_only=False)
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_date(kind):
        return array.to_numpy(zero_copy_only=False)
    values = numpy.empty(len(array), dtype=object)
    for at, value in enumerate(array.to_pylist()):
        values[at] = value
    return values
