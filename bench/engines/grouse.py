"""grouse, through its Python package. `python -m engines.grouse datafusion` runs DataFusion's own operator in the same build,
`python -m engines.grouse strings` ours without codes of strings, `python -m engines.grouse conditions` with the condition cache,
which the others do without: a query that is asked again would skip what it knows not to match."""

import sys

import grouse

from engines.server import Limit, serve


class Grouse:
    uniq = "uniq"

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        limits = {"memory_limit": limit.memory_bytes, "temp_directory": limit.temp_folder} if limit else {}
        self.connection = grouse.connect(threads=threads, **limits)
        for option, value in self.settings.items():
            self.connection.sql(f"SET grouse.{option} = '{value}'").fetchall()
        for name, path in tables.items():
            table = f"CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}'"
            view = f"CREATE VIEW {name} AS SELECT * FROM '{path}'"
            self.connection.sql(table if path.endswith(".parquet") else view).fetchall()

    def numbers(self, rows: int) -> str:
        return f"numbers({rows})"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        relation = self.connection.sql(sql)
        return list(relation.columns), relation.fetchall()


NO_CACHE = {"condition_cache": "off"}
FORMS = {
    "datafusion": NO_CACHE | {"group_by_operator": "datafusion"},
    "strings": NO_CACHE | {"group_by_codes": "off"},
    "conditions": {},
}

if __name__ == "__main__":
    serve(Grouse(FORMS[sys.argv[1]] if sys.argv[1:] else NO_CACHE))
