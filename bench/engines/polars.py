"""Polars from PyPI: its SQL over lazy scans, run by its streaming engine."""

import os
import sys
from pathlib import Path

from engines.server import Limit, Unsupported, serve


class Polars:
    uniq = "approx_count_distinct"

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        if limit:
            raise Unsupported("it has no memory limit")
        os.environ["POLARS_MAX_THREADS"] = str(threads)  # read once, when the package is loaded
        import polars

        self.polars = polars
        scans = {".csv": polars.scan_csv, ".ndjson": polars.scan_ndjson}
        text = polars.selectors.binary().cast(polars.String)
        self.context = polars.SQLContext()
        for name, path in tables.items():
            self.context.register(name, scans.get(Path(path).suffix, polars.scan_parquet)(path).with_columns(text))

    def numbers(self, rows: int) -> str:
        polars = self.polars
        frame = polars.LazyFrame().select(number=polars.int_range(rows, dtype=polars.UInt64))
        self.context.register("numbers", frame)
        return "numbers"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        exceptions = self.polars.exceptions
        try:
            frame = self.context.execute(sql).collect(engine="streaming")
        except (exceptions.SQLInterfaceError, exceptions.SQLSyntaxError) as error:
            raise Unsupported(str(error)) from error
        return frame.columns, frame.rows()


if __name__ == "__main__":
    assert "polars" not in sys.modules, "the thread count has to be set before polars is loaded"
    serve(Polars())
