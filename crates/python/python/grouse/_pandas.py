"""A result as a pandas DataFrame where pyarrow is not installed.

In: one (name, kind, data) per column, as the native module makes them. Out: a DataFrame with the dtypes that pyarrow's `to_pandas` gives.
Invariant: no value changes; integers with NULLs become float64 and booleans with NULLs objects, as pandas has it.
Not here: the fast way through pyarrow.
"""

from __future__ import annotations

from typing import Any

import numpy
import pandas


def frame(columns: list[tuple[str, str, Any, Any]]) -> pandas.DataFrame:
    """Builds the frame; names may repeat, so it is not built from a dict."""
    series = [_series(kind, data, valid) for _, kind, data, valid in columns]
    result = pandas.concat(series, axis=1) if series else pandas.DataFrame()
    result.columns = pandas.Index([name for name, *_ in columns], dtype=object if not columns else None)
    return result


def _series(kind: str, data: Any, valid: bytes | None) -> pandas.Series:
    """`kind` is a numpy dtype for packed values, `datetime64[unit] zone` for zoned timestamps, or `objects`, `strings`."""
    if kind == "objects":
        values = numpy.empty(len(data), dtype=object)
        values[:] = data
        return pandas.Series(values)
    if kind == "strings":
        return pandas.Series(data, dtype="str")
    dtype, _, zone = kind.partition(" ")
    values = numpy.frombuffer(data, dtype=dtype).copy()
    if valid is not None:
        missing = numpy.frombuffer(valid, dtype="bool") == 0
        values = _with_missing(values, missing)
    result = pandas.Series(values)
    return result.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else result


def _with_missing(values: numpy.ndarray, missing: numpy.ndarray) -> numpy.ndarray:
    if values.dtype.kind == "b":
        values = values.astype(object)
        values[missing] = None
    elif values.dtype.kind in "mM":
        values[missing] = numpy.timedelta64("NaT") if values.dtype.kind == "m" else numpy.datetime64("NaT")
    else:
        if values.dtype.kind in "iu":
            values = values.astype("float64")
        values[missing] = numpy.nan
    return values
