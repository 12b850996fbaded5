"""Packs the library that cargo has just built and the Python sources into a wheel, without compiling anything.

In: the folder with `lib_native.so`, the folder for the wheel. Out: one `grouse-*.whl` there, older ones removed. The library in it
has no symbols: they stay in the one that cargo has built.
Why not maturin: `make binary` has built the library with the rest of the workspace. maturin would be needed on every machine, and
calls cargo with flags of its own, which compiles the package (not the host) and links the library a second time. `make wheel` is
maturin's, for wheels that leave this machine: it strips the library and names the C library that it needs.
"""

import base64
import hashlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates" / "python" / "python"
LIBRARY = "lib_native.dylib" if sys.platform == "darwin" else "lib_native.so"
TAG = "cp310-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def main(built: Path, out: Path) -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    files = {
        path.relative_to(SOURCES).as_posix(): path.read_bytes()
        for path in sorted(SOURCES.rglob("*"))
        if path.is_file() and path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"
    }
    files["grouse/_native.abi3.so"] = stripped(built / LIBRARY)
    info = f"grouse-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: grouse\nVersion: {version}\nSummary: The GROUP BY engine\n"
        "License: Apache-2.0\nRequires-Python: >=3.10\n"
    ).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: grouse\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("grouse-*.whl"):
        old.unlink()
    with zipfile.ZipFile(out / f"grouse-{version}-{TAG}.whl", "w", zipfile.ZIP_STORED) as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)


def stripped(library: Path) -> bytes:
    """The library without symbols; as it is where there is no strip."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / library.name
        try:
            subprocess.run(["strip", "-o", str(out), str(library)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return library.read_bytes()
        return out.read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
