"""Writes zip archives whose members another library has compressed: the standard library's deflate leaves them 3 % larger.

In: a file, names and bytes of its members, what compresses (or None: members are stored). Out: that file.
Invariant: the same members make the same archive; members and archive are smaller than 4 GiB.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

MODE = (0o100644 << 16) & 0xFFFFFFFF
FIRST_DAY = 1 << 5 | 1
"""1980-01-01, as zip archives write days."""


def write(path: Path, members: dict[str, bytes], compress: Callable[[bytes], bytes] | None) -> None:
    directory = b""
    with path.open("wb") as out:
        for name, data in members.items():
            packed, method = (data, 0) if compress is None else (bytes(compress(data)), 8)
            # version, flags (names are UTF-8), method, time, day, checksum, sizes, length of the name, of extra fields
            about = struct.pack(
                "<HHHHHIIIHH", 20, 0x800, method, 0, FIRST_DAY, zlib.crc32(data), len(packed), len(data), len(name.encode()), 0
            )
            directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + about
            directory += struct.pack("<HHHII", 0, 0, 0, MODE, out.tell()) + name.encode()
            out.write(b"PK\3\4" + about + name.encode() + packed)
        at = out.tell()
        out.write(directory)
        out.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), at, 0))
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"{path}: {damaged} does not read as it was written")
