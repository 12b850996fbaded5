"""Packs the library that cargo has just built and the Python sources into a wheel, without compiling anything.

In: the folder with `lib_native.so`, the folder for the wheel, `--release` for a wheel that leaves this machine. Out: one `grouse-*.whl`
there, older ones removed. The library in it has no symbols: they stay in the one that cargo has built. A released wheel is compressed,
has the licences and the list of what is in it, and is tagged by the newest glibc whose symbols the library asks for (manylinux).
Why not maturin: `make binary` has built the library with the rest of the workspace. maturin would be needed on every machine, and
calls cargo with flags of its own, which compiles the package and links the library a second time.
"""

import argparse
import base64
import hashlib
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import parts
import zips

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates" / "python" / "python"
LIBRARY = "lib_native.dylib" if sys.platform == "darwin" else "lib_native.so"

# What other packages look for, as pyproject.toml says it.
ENTRY_POINTS = "[sqlalchemy.dialects]\ngrouse = grouse._sqlalchemy:GrouseDialect\n\n[ibis.backends]\ngrouse = grouse._ibis\n"


def main(built: Path, out: Path, released: bool, name: str) -> None:
    version = parts.version()
    files = {
        path.relative_to(SOURCES).as_posix(): path.read_bytes()
        for path in sorted(SOURCES.rglob("*"))
        if path.is_file() and path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"
    }
    library = stripped(built / LIBRARY)
    files["grouse/_native.abi3.so"] = library
    distribution = name.replace("-", "_")
    info = f"{distribution}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nSummary: The GROUP BY engine\n"
        "License-Expression: Apache-2.0\nRequires-Python: >=3.10\n"
    )
    platform = sysconfig.get_platform()
    if released:
        platform = manylinux(built / LIBRARY) or platform
        linked = parts.crates("grouse-python")
        files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
        files[f"{info}/licenses/THIRD-PARTY.txt"] = parts.notices(linked).encode()
        files[f"{info}/sboms/grouse.cdx.json"] = parts.bom(name, version, linked).encode()
        metadata += "License-File: LICENSE\nLicense-File: THIRD-PARTY.txt\nDescription-Content-Type: text/markdown\n\n"
        metadata += (ROOT / "README.md").read_text()
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    tag = "cp310-abi3-" + re.sub(r"[-.]", "_", platform)
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: grouse\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"{distribution}-*.whl"):
        old.unlink()
    wheel = out / f"{distribution}-{version}-{tag}.whl"
    zips.write(wheel, files, smallest if released else None)
    if released:
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


def smallest(data: bytes) -> bytes:
    import deflate  # released wheels alone need it

    return deflate.deflate_compress(data, 12)


def manylinux(library: Path) -> str | None:
    """The platform by the newest glibc that the library needs; None on other systems and where there is no objdump."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        symbols = subprocess.run(["objdump", "-T", str(library)], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    wanted = [tuple(map(int, found)) for found in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", symbols)]
    major, minor = max(wanted, default=(2, 17))
    return f"manylinux_{major}_{max(minor, 17)}_{sysconfig.get_platform().split('-', 1)[1]}"


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
    parser = argparse.ArgumentParser(description="packs a wheel of what cargo has built")
    parser.add_argument("built", type=Path, help="folder of the built library")
    parser.add_argument("out", type=Path, help="folder of the wheel")
    parser.add_argument("--release", action="store_true", help="for other machines: compressed, licences, manylinux")
    parser.add_argument("--name", default="grouse", help="name of the distribution")
    args = parser.parse_args()
    main(args.built, args.out, args.release, args.name)
