"""Python objects that are tables though they have no Arrow stream of their own: what stands for them.

In: any object. Out: an object with Arrow data, or None where the object is no table.
Invariant: what is not in memory (a LazyFrame, a dataset) is read anew by each query, and only then; columns of arrays and lists
have the values that they show, or there is an error that names the column.
Not here: frames and tables, which have a stream (_frames.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from grouse import _frames


def arrow_of(value: Any) -> Any:
    """What has the object's rows as Arrow data; None of objects that are no tables."""
    if isinstance(value, type):
        return None
    if _is(value, "polars", "LazyFrame"):
        return Reread(lambda: _frames.of_polars(value.collect()))
    if _is(value, "pyarrow.dataset", "Dataset"):
        return Reread(lambda: value.scanner().to_reader())
    if _is(value, "pyarrow.dataset", "Scanner"):
        return Reread(value.to_reader)
    if _is(value, "numpy", "ndarray"):
        return _of_array(value)
    if isinstance(value, Mapping) and _has_columns(value):
        return _table(value)
    return None


class Reread:
    """A stream of Arrow data that begins anew each time it is asked for."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._opened().__arrow_c_stream__(requested_schema)


def _is(value: Any, module: str, name: str) -> bool:
    """Whether it is of this class, whose module has then been imported."""
    found = sys.modules.get(module)
    kind = getattr(found, name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _has_columns(value: Mapping[Any, Any]) -> bool:
    """Whether it has columns by their names: arrays, series or lists."""
    return bool(value) and all(isinstance(name, str) and _is_column(column) for name, column in value.items())


def _is_column(value: Any) -> bool:
    if isinstance(value, (list, tuple)) or _is(value, "numpy", "ndarray"):
        return True
    return any(
        _is(value, module, name)
        for module, name in [
            ("pandas", "Series"),
            ("pandas", "Index"),
            ("polars", "Series"),
            ("pyarrow", "Array"),
            ("pyarrow", "ChunkedArray"),
        ]
    )


def _of_array(array: Any) -> Any:
    """An array of records has their fields as columns, one of numbers is a column; each row of two dimensions is a column."""
    if array.dtype.names:
        if array.ndim != 1:
            raise TypeError(f"records have to stand in one dimension, and not in {array.ndim}")
        return _table({name: array[name] for name in array.dtype.names})
    if array.ndim == 1:
        return _table({"column0": array})
    if array.ndim == 2:
        return _table({f"column{at}": array[at] for at in range(array.shape[0])})
    raise TypeError(f"an array has to have one or two dimensions, and not {array.ndim}")


def _table(columns: Mapping[str, Any]) -> Any:
    try:
        import pyarrow
    except ImportError as failure:
        raise TypeError("arrays and lists need pyarrow: pip install pyarrow") from failure
    arrays = {name: _column(name, column) for name, column in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
        raise TypeError(f"columns have to have the same number of rows, and not {listed}")
    return _frames.of_pyarrow(pyarrow.table(arrays))


def _column(name: str, values: Any) -> Any:
    import pyarrow

    if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)):
        return values
    if _is(values, "polars", "Series"):
        return _frames.of_polars(values.to_frame()).to_arrow().column(0)
    if _is(values, "pandas", "Series") or _is(values, "pandas", "Index"):
        return _frames.of_pandas(values.to_frame(name)).column(0)
    if isinstance(values, (list, tuple)):
        return _frames.objects(name, list(values))
    if values.ndim != 1:
        raise TypeError(f"column '{name}' has {values.ndim} dimensions; a column has one")
    if values.dtype.kind == "O":
        return _frames.objects(name, [None if isinstance(value, float) and value != value else value for value in values])
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, NotImplementedError) as failure:
        raise TypeError(f"column '{name}' of type {values.dtype} has no form in Arrow: {failure}") from failure
