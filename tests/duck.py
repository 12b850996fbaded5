"""DuckDB behind a line protocol: one statement per line in, its rows out.

In: `SQL` on one line. Out: `ok ROWS`, then one line per row with one cell per column (the kinds of tests/src/cell.rs), or
`error MESSAGE` on one line. Ends at the end of its input.
"""

import datetime
import decimal
import sys

import duckdb

EPOCH = datetime.datetime(1970, 1, 1)


def cell(value) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return f"b{int(value)}"
        case int():
            return f"i{value}"
        case decimal.Decimal():
            return f"d{value:f}"
        case float():
            return f"f{value!r}"
        case str():
            return "s" + value.encode().hex()
        case bytes() | bytearray():
            return "x" + value.hex()
        case datetime.datetime():
            return f"t{(value - EPOCH) // datetime.timedelta(microseconds=1)}"
        case datetime.date():
            return f"t{(value - EPOCH.date()).days * 86_400_000_000}"
        case list() | tuple():
            return "[" + ",".join(map(cell, value)) + "]"
        case dict():
            return "{" + ",".join(map(cell, value.values())) + "}"
    raise TypeError(f"no cell for {type(value)}")


def main() -> None:
    connection = duckdb.connect(config={"threads": 2, "memory_limit": "2GB"})
    for statement in sys.stdin:
        try:
            rows = connection.execute(statement).fetchall()
            answer = [" ".join(map(cell, row)) for row in rows]
            answer.insert(0, f"ok {len(rows)}")
        except Exception as error:
            answer = ["error " + " ".join(str(error).split())]
        print("\n".join(answer), flush=True)


if __name__ == "__main__":
    main()
