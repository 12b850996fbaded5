"""ClickHouse in process (chDB from PyPI), over views on the files."""

import json
from pathlib import Path

from chdb.session import Session

from engines.server import Limit, serve


class ChDb:
    uniq = "uniq"

    def open(self, tables: dict[str, str], threads: int, limit: Limit | None) -> None:
        self.session = Session()
        for option in ("max_threads", "max_parsing_threads", "max_download_threads"):
            self.session.query(f"SET {option} = {threads}")
        if limit:
            self.session.query(f"SET max_memory_usage = {limit.memory_bytes}")
            self.session.query(f"SET max_bytes_before_external_group_by = {limit.memory_bytes // 2}")
        for name, path in tables.items():
            self.session.query(f"CREATE VIEW {name} AS SELECT * FROM file('{path}', {format_of(path)})")

    def numbers(self, rows: int) -> str:
        return f"numbers_mt({rows})"

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        answer = json.loads(str(self.session.query(sql, "JSONCompact")))
        kinds = [column["type"] for column in answer["meta"]]
        rows = [tuple(map(typed, row, kinds)) for row in answer["data"]]
        return [column["name"] for column in answer["meta"]], rows


def format_of(path: str) -> str:
    return {".csv": "CSVWithNames", ".ndjson": "JSONEachRow"}.get(Path(path).suffix, "Parquet")


def typed(value, kind: str):
    """64-bit integers come as text."""
    kind = kind.removeprefix("Nullable(")
    if value is not None and kind.startswith(("Int", "UInt")):
        return int(value)
    if value is not None and kind.startswith("Float"):
        return float(value)
    return value


if __name__ == "__main__":
    serve(ChDb())
