"""grouse, through its Python package. `python -m engines.grouse host` runs DataFusion's own operator in the same build."""

import sys

import grouse

from engines.server import Limit, serve


class Grouse:
    uniq = "uniq"

    def __init__(self, group_by_operator: str) -> None:
        self.group_by_operator = group_by_operator

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        limits = {"memory_limit": limit.memory_bytes, "temp_directory": limit.temp_folder} if limit else {}
        self.connection = grouse.connect(threads=threads, **limits)
        self.connection.sql(f"SET grouse.group_by_operator = '{self.group_by_operator}'").fetchall()
        for name, path in tables.items():
            self.connection.sql(f"CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}'").fetchall()

    def numbers(self, rows: int) -> str:
        return f"numbers({rows})"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        relation = self.connection.sql(sql)
        return list(relation.columns), relation.fetchall()


if __name__ == "__main__":
    serve(Grouse("host" if sys.argv[1:] == ["host"] else "grouse"))
