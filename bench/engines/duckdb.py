"""DuckDB from PyPI, over views on the Parquet files."""

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
            self.connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}', binary_as_string = true)"
            )

    def numbers(self, rows: int) -> str:
        return f"(SELECT range AS number FROM range({rows}))"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        cursor = self.connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()


if __name__ == "__main__":
    serve(DuckDb())
