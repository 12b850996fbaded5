"""Packs the ADBC driver that `make` has built: the library, its manifest and what puts them in their place.

In: the library without symbols, the folder for the packages. Out: `grouse-adbc-<version>-<machine>-<system>.tar.zst`; its name and size.
Invariant: the same inputs make the same archive.
Not here: the shell (`dist.py`), the wheel (`wheel.py`).
"""

import re
import sys
from pathlib import Path

import parts
from dist import ROOT, archive_of

FOLDER = ROOT / "crates" / "adbc"


def main(library: Path, out: Path) -> None:
    version = parts.version()
    manifest = (FOLDER / "grouse.toml").read_text()
    if re.search(r'^version = "(.+)"', manifest, re.M)[1] != version:
        raise SystemExit(f"crates/adbc/grouse.toml has another version than Cargo.toml's {version}")
    linked = parts.crates("grouse-adbc")
    files = {
        library.name: (library.read_bytes(), 0o755),
        "install.sh": ((FOLDER / "install.sh").read_bytes(), 0o755),
        "grouse.toml": (manifest.encode(), 0o644),
        "README.md": ((ROOT / "docs" / "adbc.md").read_bytes(), 0o644),
        "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        "THIRD-PARTY.txt": (parts.notices(linked).encode(), 0o644),
        "grouse-adbc.cdx.json": (parts.bom("grouse-adbc", version, linked).encode(), 0o644),
    }
    made = archive_of(out, f"grouse-adbc-{version}", files)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
