"""Python objects that are tables though they have no Arrow stream of their own: what stands for them.

In: any object. Out: an object with Arrow data, or None where the object is no table.
Invariant: what is not in memory (a LazyFrame, a dataset) is read anew by each query, and only then; a condition that is handed to
it leaves out no row that the query wants. Columns of arrays and lists have the values that they show, or there is an error that
names the column.
Not here: frames and tables, which have a stream (_frames.py).
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from grouse import _frames

# A word and its parts: ("and", [condition, …]), ("<", column, value), ("in", column, [value, …]), ("is null", column).
Condition: TypeAlias = tuple[Any, ...]


def arrow_of(value: Any) -> Any:
    """What has the object's rows as Arrow data; None of objects that are no tables."""
    if isinstance(value, type):
        return None
    if _is(value, "polars", "LazyFrame"):
        return LazyScan(value)
    if _is(value, "pyarrow.dataset", "Dataset"):
        return DatasetScan(value)
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


class Scan:
    """What reads the columns and rows that a query wants, each time it is asked."""

    def schema(self) -> Any:
        """The columns, as an object with `__arrow_c_schema__`."""
        raise NotImplementedError

    def scan(self, columns: Sequence[str] | None, conditions: Sequence[Condition]) -> Any:
        """An object with `__arrow_c_stream__`: these columns (None: all) of the rows for which all conditions are true, or more."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan(None, ()).__arrow_c_stream__(requested_schema)


class LazyScan(Scan):
    """A LazyFrame of Polars."""

    def __init__(self, lazy: Any) -> None:
        self._lazy = lazy

    def schema(self) -> Any:
        import polars

        return _frames.of_polars(polars.DataFrame(schema=self._lazy.collect_schema())).schema

    def scan(self, columns: Sequence[str] | None, conditions: Sequence[Condition]) -> Any:
        import polars

        lazy = self._lazy
        for condition in conditions:
            lazy = lazy.filter(_expression(condition, polars.col, lambda _, value: value))
        return _frames.of_polars((lazy if columns is None else lazy.select(columns)).collect())


class DatasetScan(Scan):
    """A dataset of pyarrow."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def schema(self) -> Any:
        return self._dataset.schema

    def scan(self, columns: Sequence[str] | None, conditions: Sequence[Condition]) -> Any:
        import pyarrow.dataset

        # pyarrow cannot choose rows of a column of views.
        if any(str(field.type).endswith("_view") for field in self._dataset.schema):
            conditions = ()
        found = [_expression(condition, pyarrow.dataset.field, self._typed) for condition in conditions]
        wanted = functools.reduce(operator.and_, found) if found else None
        return self._dataset.scanner(columns=None if columns is None else list(columns), filter=wanted).to_reader()

    def _typed(self, name: str, value: Any) -> Any:
        """The value in the type of the column, so that the column is not cast to the value's."""
        import pyarrow

        kind = self._dataset.schema.field(name).type
        return pyarrow.array(value, kind) if isinstance(value, list) else pyarrow.scalar(value, kind)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _expression(condition: Condition, column: Callable[[str], Any], typed: Callable[[str, Any], Any]) -> Any:
    """A condition of the native module as an expression of Polars or pyarrow."""
    word, *parts = condition
    if word in ("and", "or"):
        join = operator.and_ if word == "and" else operator.or_
        return functools.reduce(join, [_expression(part, column, typed) for part in parts[0]])
    found = column(parts[0])
    if word in ("is null", "is not null"):
        missing = found.is_null()
        return missing if word == "is null" else ~missing
    value = typed(parts[0], parts[1])
    if word == "in":
        return found.is_in(value) if hasattr(found, "is_in") else found.isin(value)
    return _COMPARISONS[word](found, value)


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
