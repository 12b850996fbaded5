"""A cluster of child processes on this machine: one scheduler, some executors, ports that the system chooses.

In: how many executors, how large. Out: its address, its processes, what they have written and how long they have computed.
Invariant: at the end no process is left, and the work folders are empty.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import grouse

BINARY = Path(os.environ.get("GROUSE_CLUSTER", Path.home() / ".cache/grouse/target/release/grouse-cluster"))
TICKS = os.sysconf("SC_CLK_TCK")
# Shorter than a user wants: a lost executor costs seconds of each test.
SCHEDULER = ["--executor-timeout", "3", "--grace", "4"]
EXECUTOR = ["--heartbeat", "1"]


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """A run of the tests that hangs is ended without a word to its children."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child with its log."""

    def __init__(self, arguments: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("w") as errors:
            command = [str(BINARY), *arguments, "--log", "info"]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": errors}
            around = {**os.environ, **(environment or {})}
            self.child = subprocess.Popen(command, text=True, preexec_fn=end_with_parent, env=around, **pipes)
        line = self.child.stdout.readline()
        found = re.search(r" at (\S+):(\d+)$", line)
        if not found:
            self.end()
            raise AssertionError(f"it did not begin: {line}{log.read_text()}")
        self.host, self.port = found[1], int(found[2])

    def cpu_s(self) -> float:
        """Seconds that it has computed."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def kill(self) -> None:
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(10)

    def end(self) -> None:
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"it did not end: {self.log.read_text()[-4000:]}") from None
        self.child.stdout.close()


@dataclass
class Settings:
    """What differs from a usual cluster."""

    jobs: dict[str, str] = field(default_factory=dict)
    """Options of Ballista's."""
    executors: list[str] = field(default_factory=list)
    """Arguments of executors."""
    environment: dict[str, str] = field(default_factory=dict)
    """Of executors."""


class Cluster:
    """A scheduler and its executors."""

    def __init__(
        self,
        folder: Path,
        executors: int = 2,
        vcores: int = 1,
        memory: str = "512MB",
        tls: Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.folder, self.vcores, self.memory, self.tls, self.settings = folder, vcores, memory, tls, settings or Settings()
        jobs = [part for option in self.settings.jobs.items() for part in ("--set", "=".join(option))]
        self.scheduler = Process(["scheduler", "--port", "0", *SCHEDULER, *jobs, *self.certificates()], folder / "scheduler.log")
        self.executors: list[Process] = []
        try:
            for _ in range(executors):
                self.add_executor()
            self.wait_for(executors * vcores)
        except BaseException:
            self.end()
            raise

    @property
    def address(self) -> str:
        tls = f"?tls={self.tls}" if self.tls else ""
        return f"df://{self.scheduler.host}:{self.scheduler.port}{tls}"

    def certificates(self) -> list[str]:
        files = {"--tls-cert": "cert.pem", "--tls-key": "key.pem", "--tls-ca": "ca.pem"}
        return [part for flag, name in files.items() for part in (flag, str(self.tls / name))] if self.tls else []

    def work_folder(self, number: int) -> Path:
        return self.folder / f"work{number}"

    def add_executor(self) -> Process:
        number = len(self.executors)
        scheduler = f"{self.scheduler.host}:{self.scheduler.port}"
        arguments = ["executor", "--scheduler", scheduler, "--port", "0", "--control-port", "0", *EXECUTOR, *self.certificates()]
        sizes = ["--vcores", str(self.vcores), "--memory", self.memory, "--work-folder", str(self.work_folder(number))]
        arguments += [*sizes, *self.settings.executors]
        self.executors.append(Process(arguments, self.folder / f"executor{number}.log", self.settings.environment))
        return self.executors[-1]

    def wait_for(self, vcores: int, within_s: float = 20) -> None:
        """Until the scheduler knows of so many."""
        end, plan = time.monotonic() + within_s, ""
        with grouse.connect(self.address, threads=1) as con:
            while time.monotonic() < end:
                with contextlib.suppress(grouse.Error):
                    plan = explained(con, f"SELECT a, count(*) FROM '{small_file(self.folder)}' GROUP BY a")
                    if f"vcores={vcores}," in plan:
                        return
                time.sleep(0.1)
        raise AssertionError(f"no {vcores} vcores: {plan}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(process.log.read_text()[-3000:] for process in [self.scheduler, *self.executors])

    def idle_after(self, within_s: float = 5) -> bool:
        """Whether the executors stop computing within that time."""
        alive = [executor for executor in self.executors if executor.child.poll() is None]
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            before = sum(executor.cpu_s() for executor in alive)
            time.sleep(0.5)
            if sum(executor.cpu_s() for executor in alive) - before < 0.1:
                return True
        return False

    def left(self) -> list[Path]:
        """Files of jobs that lie in work folders of executors that run."""
        alive = [number for number, executor in enumerate(self.executors) if executor.child.poll() is None]
        parts = [part for number in alive for part in self.work_folder(number).glob("*.executor/s*")]
        # Not by a pattern: folders go while they are looked at.
        return [Path(folder) / name for part in parts for folder, _, names in os.walk(part) for name in names]

    def is_clean_within(self, seconds: float = 10) -> bool:
        end = time.monotonic() + seconds
        while self.left() and time.monotonic() < end:
            time.sleep(0.2)
        return not self.left()

    def end(self) -> None:
        for process in [*self.executors, self.scheduler]:
            process.end()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        self.end()
        if kind is None:
            left = [path for number in range(len(self.executors)) for path in self.work_folder(number).iterdir()]
            killed = [executor for executor in self.executors if executor.child.returncode == -signal.SIGKILL]
            # A killed one leaves its folder to the next that begins there.
            assert len(left) <= len(killed), left


def explained(con: grouse.Connection, sql: str) -> str:
    """The plan of a statement."""
    return "\n".join(str(row[-1]) for row in con.sql(f"EXPLAIN {sql}").fetchall())


def small_file(folder: Path) -> Path:
    """A file of a few rows."""
    path = folder / "small.parquet"
    if not path.exists():
        with grouse.connect(threads=1) as con:
            con.sql(f"COPY (SELECT number AS a FROM numbers(10)) TO '{path}'")
    return path
