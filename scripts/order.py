"""Writes down in which order the functions of the built library are first called, so that the linker can lay them side by side.

In: cargo's release folder. Out: `functions.order` there, which `order.rs` hands to the linker; left alone while its names are still
the library's. A query calls 9,000 of 188,000 functions, 6 of 84 MB of code, but the system makes code resident 64 KiB around each:
laid out as compiled 44 to 57 MB are, in this order 15 to 17, and the first query of a process takes three quarters of the time.
How: a child loads the library and waits; each function's first byte becomes a breakpoint, which is taken away when it is hit.
The small queries of the benchmark run, once as they are and once under a tight memory limit: 4 s in all.
Where this cannot be done (another system, processor or linker; no ptrace) it says so, and functions stay as they are compiled.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates" / "python" / "python" / "grouse"
sys.path.insert(0, str(ROOT / "bench"))

FITS = 0.95
"""Share of the written names that the library has to have."""
PATIENCE_S = 120
"""After which the child is ended."""
TRACEME, CONT, SETOPTIONS, PEEKUSER, POKEUSER = 0, 7, 0x4200, 3, 6
CLONE_AND_EXITKILL = 0x8 | 0x100000
RIP = 16 * 8
"""Where `struct user` of x86-64 has the instruction pointer."""
BREAKPOINT = 0xCC

NOT_TRACED = 77
"""With which a child ends that may not be watched: the machine's choice, while an exception of Python in it is a fault of ours."""

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def main(built: Path) -> None:
    library, out = built / "lib_native.so", built / "functions.order"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return say(f"functions stay as compiled: not done on {platform.system()} {platform.machine()}")
    comment, functions = read_library(library)
    if b"LLD" not in comment:
        return say("functions stay as compiled: the library was not linked by lld")
    names = set(functions.values())
    known = out.read_text().splitlines() if out.exists() else []
    if known and sum(name in names for name in known) >= FITS * len(known):
        return None
    with tempfile.TemporaryDirectory() as folder:
        called = trace(prepare(built, Path(folder)), library, functions)
    whole = out.with_suffix(f".{os.getpid()}")
    whole.write_text("".join(f"{name}\n" for name in called))
    whole.replace(out)
    return say(f"{len(called):,} of {len(functions):,} functions are laid out in the order of their first call")


def say(text: str) -> None:
    print(text, flush=True)


def read_library(path: Path) -> tuple[bytes, dict[int, str]]:
    """Who linked it, and address -> name of each function in it."""
    data = path.read_bytes()
    table, count, names = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3C)
    sections = [struct.unpack_from("<II16xQQI", data, table + 64 * index) for index in range(count)]
    comment = b""
    functions: dict[int, str] = {}
    for name, kind, at, size, link in sections:
        if data.startswith(b".comment\0", sections[names][2] + name):
            comment = data[at : at + size]
        if kind == 2:  # the table of all symbols, beside the exported ones
            strings = sections[link][2]
            for name, info, section, address, length in struct.iter_unpack("<IBxHQQ", data[at : at + size]):
                if info & 0xF == 2 and section and length:
                    end = data.index(b"\0", strings + name)
                    functions.setdefault(address, data[strings + name : end].decode())
    return comment, functions


def prepare(built: Path, folder: Path) -> list[str]:
    """The package and small tables in `folder`, and the command of the child."""
    from queries import SIZES

    package = folder / "grouse"
    package.mkdir()
    for source in SOURCES.iterdir():
        (package / source.name).symlink_to(source)
    (package / "_native.abi3.so").symlink_to(built / "lib_native.so")
    for sizes in SIZES.values():
        small = sizes["small"]
        made = [small.parquet] if small.parquet else small.files.values()
        for file in made:
            subprocess.run(
                [built / "grouse-datagen", *small.make, "--out", folder / file], check=True, stdout=subprocess.DEVNULL
            )
        for file in small.files.values() if small.parquet else ():
            copy = f"COPY (SELECT * FROM '{folder / small.parquet}') TO '{folder / file}'"
            subprocess.run([built / "grouse", copy], check=True, stdout=subprocess.DEVNULL)
    return [sys.executable, __file__, "--run", str(built / "lib_native.so"), str(folder)]


def trace(command: list[str], library: Path, functions: dict[int, str]) -> list[str]:
    """Runs the command; the functions that it calls, first call first."""
    child = os.fork()
    if child == 0:
        if libc.ptrace(TRACEME, 0, None, None) == -1:
            os._exit(NOT_TRACED)
        signal.alarm(PATIENCE_S)
        os.execv(command[0], command)
    try:
        return follow(child, library, functions)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise


def follow(child: int, library: Path, functions: dict[int, str]) -> list[str]:
    """The child from its first stop to its end."""
    called: list[str] = []
    places: dict[int, tuple[str, int]] = {}
    memory = None
    while True:
        thread, status = os.waitpid(-1, 0x40000000)  # threads of the child too
        if not os.WIFSTOPPED(status):
            if thread == child:
                if os.waitstatus_to_exitcode(status) == 1:
                    raise SystemExit("the queries that were to be watched failed")
                if status != 0:
                    raise ChildProcessError(f"the queries that were to be watched ended with status {status}")
                return called
            continue
        stopped_by, pass_on = os.WSTOPSIG(status), 0
        if stopped_by == signal.SIGTRAP and memory is None:
            ptrace(SETOPTIONS, thread, 0, CLONE_AND_EXITKILL)  # it has just become the command
        elif stopped_by == signal.SIGSTOP and thread == child and memory is None:
            memory = open(f"/proc/{child}/mem", "r+b", buffering=0)
            places = break_all(child, memory, library, functions)
        elif stopped_by == signal.SIGTRAP and not status >> 16:
            # another thread may have taken the breakpoint away since
            at = libc.ptrace(PEEKUSER, thread, RIP, None) - 1
            if at in places:
                name, byte = places[at]
                memory.seek(at)
                if memory.read(1)[0] == BREAKPOINT:
                    memory.seek(at)
                    memory.write(bytes([byte]))
                    called.append(name)
                ptrace(POKEUSER, thread, RIP, at)
        elif stopped_by not in (signal.SIGTRAP, signal.SIGSTOP):
            pass_on = stopped_by
        ptrace(CONT, thread, 0, pass_on)


def ptrace(request: int, thread: int, address: int, data: int) -> None:
    failed = libc.ptrace(request, thread, address, data) == -1
    if failed and ctypes.get_errno() != errno.ESRCH:  # a thread that is gone, as all are when the first one ends
        raise OSError(ctypes.get_errno(), f"ptrace: {os.strerror(ctypes.get_errno())}")


def break_all(child: int, memory, library: Path, functions: dict[int, str]) -> dict[int, tuple[str, int]]:
    """Puts a breakpoint at the start of each function; address -> its name and the byte that was there."""
    maps = Path(f"/proc/{child}/maps").read_text().splitlines()
    base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library.resolve())))
    low, high = min(functions), max(functions) + 1
    memory.seek(base + low)
    code = bytearray()
    while len(code) < high - low:
        code += memory.read(high - low - len(code))
    places = {}
    for address, name in functions.items():
        places[base + address] = (name, code[address - low])
    for address in functions:
        code[address - low] = BREAKPOINT
    memory.seek(base + low)
    written = 0
    while written < len(code):
        written += memory.write(code[written:])
    return places


def run(library: str, folder: Path) -> None:
    """The child: the queries, through the package."""
    ctypes.CDLL(library)
    os.kill(os.getpid(), signal.SIGSTOP)
    sys.path.insert(0, str(folder))
    import grouse
    from queries import SIZES, load

    for memory in ("default", "32MB"):
        session = grouse.connect()
        if memory != "default":
            session.sql(f"SET memory_limit = '{memory}'")
        for set_name, sizes in SIZES.items():
            for table, file in sizes["small"].files.items():
                session.sql(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM '{folder / file}'")
            for query in load(set_name):
                try:
                    session.sql(query.text("grouse").replace("{numbers}", f"numbers({sizes['small'].rows})")).fetchall()
                except grouse.Error:
                    pass  # past the limit: an end that has its functions too


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run(sys.argv[2], Path(sys.argv[3]))
    else:
        try:
            main(Path(sys.argv[1]).resolve())
        except OSError as error:  # the library is whole without
            say(f"functions stay as compiled: {type(error).__name__}: {error}")
