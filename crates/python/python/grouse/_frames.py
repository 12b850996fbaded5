"""Frames of pandas and polars, and tables of pyarrow, as Arrow data that the engine computes with.

In: a DataFrame, or a table, batch or reader of pyarrow. Out: data of pyarrow, or a polars DataFrame without columns of no type.
Invariant: a column has the values that the frame shows, or there is an error that names it: no time of day is cut off, no index
becomes a column, and no value takes the type of its neighbours.
Not here: text and types of Arrow data, which the native module checks.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import uuid
import weakref
from typing import Any

# Digits of the widest decimal.
DIGITS_MAX = 76

# Streams that queries have read: another query would find them empty.
_READ: weakref.WeakSet[Any] = weakref.WeakSet()


def note_read(reader: Any) -> None:
    """Remembers that a stream is being read."""
    _READ.add(reader)


def was_read(reader: Any) -> bool:
    """Whether a query has read the stream."""
    try:
        return reader in _READ
    except TypeError:  # it takes no weak reference, so that none is kept
        return False


def of_pandas(frame: Any) -> Any:
    """The columns of a pandas DataFrame; its index is none of them."""
    import pyarrow

    if len(frame) > 0 and frame.shape[1] == 0:
        raise TypeError("it has rows, but no columns")
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except Exception:  # noqa: BLE001: what it does not like is found column by column, with its name
        columns = [_column(frame.iloc[:, at]) for at in range(frame.shape[1])]
        return pyarrow.Table.from_arrays(columns, names=_names(frame))
    for at, field in enumerate(table.schema):
        if _has_to_be_seen(frame.dtypes.iloc[at], field.type):
            table = table.set_column(at, field.name, _column(frame.iloc[:, at]))
    return of_pyarrow(table)


def of_pyarrow(data: Any) -> Any:
    """The same table, batch or reader; Arrow's Rust library goes twice to where a struct begins that lies in a slice of another one."""
    import pyarrow

    if not any(_has_inner_struct(field.type) for field in data.schema):
        return data
    if isinstance(data, pyarrow.Table):
        columns = [pyarrow.chunked_array([_whole(chunk) for chunk in column.chunks], column.type) for column in data.columns]
        return pyarrow.Table.from_arrays(columns, schema=data.schema)
    if isinstance(data, pyarrow.RecordBatch):
        return _whole_batch(data)
    return pyarrow.RecordBatchReader.from_batches(data.schema, (_whole_batch(batch) for batch in data))


def _has_inner_struct(kind: Any, is_inside: bool = False) -> bool:
    """Whether a struct lies directly in another one or in a list of fixed length."""
    from pyarrow import types

    if not types.is_nested(kind):
        return False
    if types.is_struct(kind) and is_inside:
        return True
    is_inside = types.is_struct(kind) or types.is_fixed_size_list(kind)
    return any(_has_inner_struct(kind.field(at).type, is_inside) for at in range(kind.num_fields))


def _whole_batch(batch: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays([_whole(column) for column in batch.columns], schema=batch.schema)


def _whole(array: Any) -> Any:
    """The array, copied if it is a slice or contains one, and such structs."""
    import pyarrow

    is_copied = _has_inner_struct(array.type) and _is_slice(array)
    return pyarrow.concat_arrays([array]) if is_copied else array


def _is_slice(array: Any) -> bool:
    from pyarrow import types

    kind = array.type
    if array.offset > 0:
        return True
    if types.is_struct(kind):
        return any(_is_slice(array.field(at)) for at in range(kind.num_fields))
    if types.is_map(kind):
        return _is_slice(array.keys) or _is_slice(array.items)
    return hasattr(array, "values") and _is_slice(array.values)


def _has_to_be_seen(dtype: Any, kind: Any) -> bool:
    """Whether pyarrow may have made something else of the values, or something that SQL has no name for."""
    from pyarrow import types

    if isinstance(kind, _extension()):
        return True
    return dtype == object and (_holds_times(kind) or types.is_binary(kind))


def _holds_times(kind: Any) -> bool:
    """Whether values of this type are dates or times, or contain some."""
    from pyarrow import types

    if types.is_nested(kind):
        return any(_holds_times(kind.field(at).type) for at in range(kind.num_fields))
    return types.is_temporal(kind)


def _extension() -> Any:
    import pyarrow

    return pyarrow.BaseExtensionType


def _names(frame: Any) -> list[str]:
    """Names of the columns; the second `a` is `a_1`."""
    names: list[str] = []
    wanted = [str(name) for name in frame.columns]
    for name in wanted:
        unique, nth = name, 0
        while unique in names or (nth > 0 and unique in wanted):
            nth += 1
            unique = f"{name}_{nth}"
        names.append(unique)
    return names


def _column(series: Any) -> Any:
    import pyarrow

    kind = str(series.dtype)
    if kind.startswith("period"):
        return pyarrow.Array.from_pandas(series.astype(str).where(series.notna(), None), type=pyarrow.string())
    if series.dtype == object:
        return _objects(series)
    if kind.startswith("Sparse"):
        series = series.sparse.to_dense()
    elif not getattr(series.dtype, "isnative", True):
        series = series.astype(series.dtype.newbyteorder("="))
    try:
        array = pyarrow.Array.from_pandas(series)
    except Exception as failure:
        raise TypeError(f"column '{series.name}' of type {kind} has no form in Arrow: {failure}") from failure
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    return array.storage if isinstance(array.type, _extension()) else array


def _objects(series: Any) -> Any:
    """A column of Python objects."""
    return objects(series.name, [None if gone else value for value, gone in zip(series, series.isna())])


def objects(name: Any, values: list[Any]) -> Any:
    """Python objects, which have to be of one type, as an array of pyarrow."""
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if kinds and all(issubclass(kind, datetime.date) for kind in kinds):
        return _dates(name, values, kinds)
    if kinds == {uuid.UUID}:
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.string())
    if kinds == {int}:
        return _integers(name, values)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    if {bytes, str} <= kinds:
        raise TypeError(_mixed(name, names))
    try:
        array = pyarrow.array(values)
    except Exception as failure:
        if len(kinds) > 1:
            raise TypeError(_mixed(name, names)) from failure
        raise TypeError(f"column '{name}' has objects of {names}, which have no form in Arrow") from failure
    if _holds_times(array.type):
        for value, made in zip(values, array.to_pylist()):
            if not _is_kept(value, made):
                raise TypeError(_mixed(name, names if len(kinds) > 1 else f"inside a {names}"))
    return array


def _is_kept(value: Any, made: Any) -> bool:
    """Whether dates and times have become what they are: pyarrow takes a number beside them for one, and cuts times off."""
    if isinstance(made, dict):
        return not isinstance(value, dict) or all(_is_kept(item, made.get(key)) for key, item in value.items())
    if isinstance(made, (list, tuple)):
        items = value.items() if isinstance(value, dict) else value
        return all(_is_kept(item, other) for item, other in zip(items, made))
    if not isinstance(made, (datetime.date, datetime.time, datetime.timedelta)):
        return True
    if isinstance(made, datetime.date) and not isinstance(made, datetime.datetime):
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    # numpy counts its spans among numbers.
    return not isinstance(value, numbers.Number) or type(value).__name__ == "timedelta64"


def _dates(name: Any, values: list[Any], kinds: set[type]) -> Any:
    """Dates, or moments where one value has a time: a date is its midnight then."""
    import pyarrow

    if not any(issubclass(kind, datetime.datetime) for kind in kinds):
        return pyarrow.array(values, pyarrow.date32())
    zones = {isinstance(value, datetime.datetime) and value.tzinfo is not None for value in values if value is not None}
    if len(zones) > 1:
        raise TypeError(f"column '{name}' has times with and without a zone; give all of them one")
    if zones == {True}:
        return pyarrow.array(values, pyarrow.timestamp("us", "UTC"))
    midnight = datetime.time()
    moments = [
        datetime.datetime.combine(value, midnight) if type(value) is datetime.date else value for value in values
    ]
    return pyarrow.array(moments, pyarrow.timestamp("us"))


def _integers(name: Any, values: list[Any]) -> Any:
    """Integers, as decimals where 64 bits do not hold them."""
    import pyarrow

    present = [value for value in values if value is not None]
    if -(1 << 63) <= min(present) and max(present) < 1 << 63:
        return pyarrow.array(values, pyarrow.int64())
    if 0 <= min(present) and max(present) < 1 << 64:
        return pyarrow.array(values, pyarrow.uint64())
    digits = max(len(str(abs(value))) for value in present)
    if digits > DIGITS_MAX:
        raise TypeError(f"column '{name}' has integers of {digits} digits; SQL's have at most {DIGITS_MAX}")
    kind = pyarrow.decimal128(38, 0) if digits <= 38 else pyarrow.decimal256(DIGITS_MAX, 0)
    context = decimal.Context(prec=DIGITS_MAX)
    return pyarrow.array([None if value is None else context.create_decimal(value) for value in values], kind)


def _mixed(name: Any, kinds: str) -> str:
    return f"column '{name}' has values of several types ({kinds}); make them one, such as frame['{name}'].astype(str)"


def of_polars(frame: Any) -> Any:
    """The same frame; columns that have no type, since all of their values are missing, are integers, and those of 128 bits decimals."""
    import polars

    wrong = [name for name, dtype in frame.schema.items() if dtype == polars.Object]
    if wrong:
        raise TypeError(f"column '{wrong[0]}' has Python objects (polars.Object), which have no form in Arrow")
    typed = {name: _typed(dtype) for name, dtype in frame.schema.items()}
    changed = {name: dtype for name, dtype in typed.items() if dtype != frame.schema[name]}
    return frame.cast(changed) if changed else frame


def _typed(dtype: Any) -> Any:
    import polars

    if dtype == polars.Null:
        return polars.Int32
    if str(dtype) in ("Int128", "UInt128"):
        return polars.Decimal(38, 0)
    if isinstance(dtype, polars.List):
        return polars.List(_typed(dtype.inner))
    if isinstance(dtype, polars.Array):
        # `inner` leaves out one dimension of several.
        return polars.Array(_typed(dtype.inner), dtype.size)
    if isinstance(dtype, polars.Struct):
        return polars.Struct([polars.Field(field.name, _typed(field.dtype)) for field in dtype.fields])
    return dtype
