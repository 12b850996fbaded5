"""DuckDB from PyPI, over views on the files. `python -m engines.duckdb enums` reads tables of its own instead, whose
strings of few values are ENUMs."""

import re
import sys

import duckdb

from engines.server import Limit, serve


class DuckDb:
    uniq = "approx_count_distinct"

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        config = {"threads": threads}
        if limit:
            config |= {"memory_limit": f"{limit.memory_bytes}B", "temp_directory": limit.temp_folder}
        self.connection = duckdb.connect(config=config)
        for name, path in tables.items():
            self.connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source_of(path)}")

    def numbers(self, rows: int) -> str:
        return f"(SELECT range AS number FROM range({rows}))"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        cursor = self.connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()


def source_of(path: str) -> str:
    return f"read_parquet('{path}', binary_as_string = true)" if path.endswith(".parquet") else f"'{path}'"


class WithEnums(DuckDb):
    """Over tables in memory with the columns that queries name, which are read from the files when one first names them."""

    VALUES_MAX = 1 << 16
    """A text with more values stays VARCHAR."""

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        super().open({f"{name}_file": path for name, path in tables.items()}, threads, limit)
        described = {name: self.connection.execute(f"DESCRIBE {name}_file").fetchall() for name in tables}
        self.kinds = {name: dict(row[:2] for row in rows) for name, rows in described.items()}
        self.loaded = {name: set() for name in tables}

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        for name, loaded in self.loaded.items():
            kinds = self.kinds[name]
            named = {column for column in kinds if re.search(rf"\b{column}\b", sql)} or {next(iter(kinds))}
            if re.search(rf"\b{name}\b", sql) and not named <= loaded:
                loaded |= named
                columns = ", ".join(self.typed(name, column, kinds[column]) for column in sorted(loaded))
                self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {columns} FROM {name}_file")
        return super().query(sql)

    def typed(self, table: str, column: str, kind: str) -> str:
        values = f"(SELECT DISTINCT {column} FROM {table}_file WHERE {column} IS NOT NULL ORDER BY {column})"
        if kind != "VARCHAR" or self.connection.execute(f"SELECT count(*) FROM {values}").fetchone()[0] > self.VALUES_MAX:
            return column
        self.connection.execute(f"CREATE TYPE IF NOT EXISTS {table}_{column} AS ENUM {values}")
        return f"CAST({column} AS {table}_{column}) AS {column}"


if __name__ == "__main__":
    serve(WithEnums() if sys.argv[1:] == ["enums"] else DuckDb())
