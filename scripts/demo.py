"""The demo: the main job on the demo table, then its speed and what the operator did.

In: the shell, a file with one statement over `data/hits.parquet`. Out: the statement, its result (the shell draws a progress
bar while it runs), rows per second, the operator's own account from EXPLAIN ANALYZE.
"""

import re
import subprocess
import sys
import time
from pathlib import Path


def main(shell: str, script: str) -> None:
    statement = Path(script).read_text().strip().rstrip(";")
    rows = int(answer(shell, "SELECT count(*) FROM 'data/hits.parquet'").split()[-1])
    print(f"\n{statement};\n", flush=True)
    started = time.monotonic()
    subprocess.run([shell, "--", statement], check=True)
    took_s = time.monotonic() - started
    print(f"\n{rows:,} rows in {took_s:.2f} s: {rows / took_s / 1e6:.1f} million rows per second, start-up and Parquet decoding included")

    print("\nwhat the operator did (EXPLAIN ANALYZE):")
    plan = answer(shell, f"EXPLAIN ANALYZE {statement}")
    for line in re.findall(r"GroupByExec:.*|AggregateExec:.*", plan):
        print(" ", re.sub(r'"+$', "", line).replace(", metrics=[", "\n  ").rstrip("]"))


def answer(shell: str, statement: str) -> str:
    done = subprocess.run([shell, "--format", "csv", statement], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
