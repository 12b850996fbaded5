"""One process per engine, asked one question at a time.

In: a command line and a working folder. Out: answers as dicts, `Stopped` when there is none in time.
Invariant: a process that did not answer is dead when `Stopped` is raised; the next question starts another.
"""

import json
import os
import select
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent


class Stopped(Exception):
    """No answer: `kind` is "timeout" or "crash"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class LineProcess:
    """A process that answers each line of its input with one line."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command = command
        self.log = log
        self.process: subprocess.Popen | None = None
        self.unread = b""

    def start(self) -> None:
        self.unread = b""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0
            )

    def ask(self, line: str, timeout_s: float) -> str:
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(line.encode() + b"\n")
            return self.read_line(time.monotonic() + timeout_s)
        except BrokenPipeError:
            raise self.crashed() from None

    def read_line(self, deadline: float) -> str:
        while b"\n" not in self.unread:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self.process.stdout], [], [], left_s)[0]:
                self.stop()
                raise Stopped("timeout", "no answer in time")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self.crashed()
            self.unread += chunk
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def crashed(self) -> Stopped:
        code = self.process.wait()
        self.process = None
        return Stopped("crash", f"the process ended with code {code}; see {self.log}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class EngineProcess:
    """An engine with its tables open; started again, tables and all, after it was stopped."""

    def __init__(self, name: str, command: list[str], opening: dict, log: Path) -> None:
        self.name = name
        self.lines = LineProcess(command, log)
        self.opening = opening

    def request(self, message: dict, timeout_s: float) -> dict:
        if self.lines.process is None:
            opened = json.loads(self.lines.ask(json.dumps({"op": "open", **self.opening}), OPEN_TIMEOUT_S))
            if "error" in opened:
                self.stop()
                return opened
        return json.loads(self.lines.ask(json.dumps(message), timeout_s))

    def query(self, sql: str, numbers: int, timeout_s: float) -> dict:
        """The answer, or {"error", "kind"}."""
        try:
            return self.request({"op": "query", "sql": sql, "numbers": numbers}, timeout_s)
        except Stopped as stopped:
            return {"kind": stopped.kind, "error": str(stopped)}

    def stop(self) -> None:
        self.lines.stop()


class DecodeProcess:
    """`grouse-decode`: the time that only decoding the columns takes."""

    def __init__(self, binary: Path, threads: int, log: Path) -> None:
        self.lines = LineProcess([str(binary), "--threads", str(threads)], log)

    def seconds(self, path: str, columns: list[str]) -> float | None:
        """None where there is nothing to decode; a file that cannot be decoded ends the run."""
        if not columns:
            return None
        answer = self.lines.ask(f"{path}\t{','.join(columns)}", DECODE_TIMEOUT_S).split("\t")
        if answer[0] == "error":
            raise SystemExit(f"cannot measure the floor of {', '.join(columns)}: {answer[1]}")
        return float(answer[0])

    def stop(self) -> None:
        self.lines.stop()


OPEN_TIMEOUT_S = 300.0  # touching the memory is slow on some virtual machines
DECODE_TIMEOUT_S = 300.0
