"""Runs every suite under its own budget and ends in lines that count the tests.

In: test binaries that `cargo test --no-run` has built, the Python package in .venv. Out: one line per suite, one in all.
Invariant: every test binary that cargo knows is run (a new one gets DEFAULT_BUDGET_S); a suite that prints no count, runs
out of its budget or ends badly fails the run. `--soak` runs the long suites instead; their output goes to tests/record.
"""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = Path(os.environ["CARGO_TARGET_DIR"]).resolve() / "release"
CARGO = ["cargo", "test", "--release", "--locked", "--workspace"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "crates/python/pyproject.toml"]
PYTHON_TESTS = ["crates/python/tests", "bench/tests", "docs"]
# A library beside the Python package's, in a process of its own.
DRIVER_TESTS = ["crates/adbc/tests"]
# Processes of clusters, which want the machine for themselves.
CLUSTER_TESTS = ["crates/node/tests"]

# Seconds a suite may take on 2 busy cores, about four times what it takes on 2 idle ones; together at most 25 minutes.
DEFAULT_BUDGET_S = 60
BUDGET_S = {
    "grouse_groupby": 120,
    "grouse/engine": 180,
    "grouse/operator": 180,
    "grouse-tests/joins": 120,
    "grouse-tests/endings": 180,
    "grouse-tests/crowded": 180,
    "grouse-tests/damaged": 120,
    "grouse-tests/write_faults": 180,
    "grouse-tests/oracle": 400,
    "grouse-tests/slt": 300,
    "cluster": 240,
    "docs": 90,
    "driver": 120,
    "go": 300,
    "python": 300,
}
TOTAL_BUDGET_S = 1500
SOAK_BUDGET_S = 6 * 3600


@dataclass
class Suite:
    name: str
    command: list[str]
    cwd: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    ignored: int = 0

    def add(self, other: "Count") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.ignored += other.ignored


def rust_suites() -> list[Suite]:
    """One suite per test binary, in cargo's own order."""
    listing = subprocess.run(
        [*CARGO, "--no-run", "--quiet", "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    suites = []
    for line in listing.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        name = f"{package_of(folder)}/{target['name']}" if target["kind"] == ["test"] else target["name"]
        environment = {"CARGO_MANIFEST_DIR": str(folder), "CARGO_BIN_EXE_grouse": str(RELEASE / "grouse")}
        suites.append(Suite(name, [message["executable"]], folder, environment))
    return suites


def package_of(folder: Path) -> str:
    return re.search(r'^name = "(.+)"', (folder / "Cargo.toml").read_text(), re.M)[1]


def run(suite: Suite, budget_s: float) -> tuple[Count, str, str]:
    """Runs one suite; gives its counts, what went wrong ("" if nothing) and its output."""
    try:
        done = subprocess.run(
            suite.command,
            cwd=suite.cwd,
            env={**os.environ, **suite.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=budget_s,
        )
    except subprocess.TimeoutExpired as expired:
        output = (expired.output or b"").decode(errors="replace")
        return count(output), f"ran out of its budget of {budget_s:.0f} s", output
    output = done.stdout.decode(errors="replace")
    counted = count(output)
    if done.returncode:
        return counted, f"exit status {done.returncode}", output
    return counted, "" if counted is not None else "printed no count of tests", output


def count(output: str) -> Count | None:
    """The counts that libtest or pytest prints; None where there are none."""
    total, seen = Count(), False
    for match in re.finditer(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", output):
        total.add(Count(*map(int, match.groups())))
        seen = True
    summary = re.findall(r"^(?=.*\d+ (?:passed|failed|error)).*in [\d.]+s.*$", output, re.M)
    for word, number in [(w, int(n)) for n, w in re.findall(r"(\d+) (\w+)", summary[-1])] if summary and not seen else []:
        seen = True
        kind = {"passed": "passed", "skipped": "ignored", "xfailed": "ignored"}.get(word)
        kind = "failed" if word in ("failed", "error", "errors") else kind
        if kind:
            setattr(total, kind, getattr(total, kind) + number)
    return total if seen else None


def everyday() -> list[Suite]:
    python = Suite("python", [*PYTEST, *PYTHON_TESTS])
    driver = Suite("driver", [*PYTEST, *DRIVER_TESTS])
    go = Suite("go", [sys.executable, "scripts/go_tests.py"])
    cluster = Suite("cluster", [*PYTEST, *CLUSTER_TESTS], environment={"GROUSE_CLUSTER": str(RELEASE / "grouse-cluster")})
    return [*rust_suites(), Suite("docs", [*CARGO, "--quiet", "--doc"]), python, driver, go, cluster]


def test() -> bool:
    total, bad, started = Count(), [], time.monotonic()
    suites = everyday()
    for suite in suites:
        left_s = TOTAL_BUDGET_S - (time.monotonic() - started)
        budget_s = min(BUDGET_S.get(suite.name, DEFAULT_BUDGET_S), max(left_s, 1))
        began = time.monotonic()
        counted, trouble, output = run(suite, budget_s)
        took_s = time.monotonic() - began
        counted = counted or Count()
        total.add(counted)
        if trouble:
            bad.append(suite.name)
            print(f"{output}\n---- suite {suite.name}: {trouble}")
        for note in re.findall(r"^note: .*$", output, re.M):
            print(f"  {note}")
        state = "FAILED" if trouble else "ok"
        print(
            f"{suite.name:<32} {state:<6} {counted.passed:>5} passed {counted.failed:>3} failed {counted.ignored:>3} ignored"
            f" {took_s:>6.1f} s of {budget_s:.0f} s",
            flush=True,
        )
    print(
        f"tests: {total.passed + total.failed} run, {total.passed} passed, {total.failed} failed, {total.ignored} ignored"
        f" in {time.monotonic() - started:.0f} s" + (f"; suites that failed: {', '.join(bad)}" if bad else "")
    )
    return not bad


def soak() -> bool:
    """All parts once more, from where the record says that each goes on."""
    record = ROOT / "tests" / "record"
    record.mkdir(exist_ok=True)
    command = [str(RELEASE / "grouse-soak"), "--record", str(record / "soak.tsv")]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=SOAK_BUDGET_S, text=True)
    log = record / f"soak-{date.today()}.txt"
    log.write_text(done.stdout)
    print(done.stdout, f"written to {log.relative_to(ROOT)}, in all: {record.relative_to(ROOT)}/soak.tsv", sep="")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(0 if (soak() if "--soak" in sys.argv else test()) else 1)
