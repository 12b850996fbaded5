"""Runs the Go package of the ADBC driver, where there are a Go compiler, a C compiler and the modules that it needs.

In: the driver's library, which `make build` has made. Out: one line that counts the tests; a note says what was missing.
Invariant: what is missing on the machine skips the tests and is said; a test that fails, or a package that does not compile, fails.
Not here: the benchmark (`go test -bench . ./...` in that folder; bench/record/go.md has what it said).
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "crates" / "adbc" / "go"
DOWNLOAD_S = 60


def main() -> int:
    began = time.monotonic()
    lacking = missing()
    if lacking:
        print(f"note: Go's tests of the ADBC driver SKIPPED: {lacking}")
        print(f"0 passed, 1 skipped in {time.monotonic() - began:.1f}s")
        return 0
    done = subprocess.run(["go", "test", "-count=1", "-json", "./..."], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    counts = {"pass": 0, "fail": 0, "skip": 0}
    for line in done.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {"Output": f"{line}\n"}
        if "Test" in event and event.get("Action") in counts:
            counts[event["Action"]] += 1
        if done.returncode and "Output" in event:
            print(event["Output"], end="")
    counts["fail"] += bool(done.returncode) and not counts["fail"]
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped in {time.monotonic() - began:.1f}s")
    return done.returncode


def missing() -> str:
    """What this machine lacks; "" if nothing."""
    if not shutil.which("go"):
        return "there is no go"
    if not (shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")):
        return "there is no C compiler"
    try:
        done = subprocess.run(["go", "mod", "download"], cwd=FOLDER, capture_output=True, text=True, timeout=DOWNLOAD_S)
    except subprocess.TimeoutExpired:
        return "the modules cannot be had in a minute"
    return "" if done.returncode == 0 else f"the modules cannot be had ({done.stderr.strip().splitlines()[-1:]})"


if __name__ == "__main__":
    sys.exit(main())
