"""Packs the shell that `make` has built for machines that build nothing: an archive and a Debian package.

In: the shell without symbols, the folder for the packages. Out: `grouse-<version>-<machine>-linux.tar.zst` and `grouse_<version>_<arch>.deb`,
each with the shell, its manual page, completions, licences and the list of what is in it; both by name and size on standard output.
Invariant: the same inputs make the same archive. The Debian package depends on the glibc that the shell asks for.
Not here: the wheel (`wheel.py`), signing, and what other systems want (`.github/workflows/release.yml`).
"""

import gzip
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import parts
from wheel import manylinux

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# What the shell writes of itself, and where it lies in the archive; Debian's places are in `debian`.
GENERATED = {"man": "grouse.1", "bash": "completions/grouse.bash", "zsh": "completions/_grouse", "fish": "completions/grouse.fish"}


def main(shell: Path, out: Path) -> None:
    version = parts.version()
    linked = parts.crates("grouse-cli")
    binary = shell.read_bytes()
    papers = {path: generated(shell, kind) for kind, path in GENERATED.items()} | {
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "THIRD-PARTY.txt": parts.notices(linked).encode(),
        "grouse.cdx.json": parts.bom("grouse", version, linked).encode(),
        "CHANGELOG.md": (ROOT / "CHANGELOG.md").read_bytes(),
        "README.md": (ROOT / "README.md").read_bytes(),
    }
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("grouse-*.tar.zst"), *out.glob("grouse_*.deb")]:
        old.unlink()
    for made in (archive(out, version, binary, papers), debian(out, version, binary, papers, shell)):
        if made:
            print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")


def generated(shell: Path, kind: str) -> bytes:
    return subprocess.run([str(shell), "--generate", kind], check=True, stdout=subprocess.PIPE).stdout


def archive(out: Path, version: str, binary: bytes, papers: dict[str, bytes]) -> Path:
    """One folder with everything, compressed by zstd."""
    files = {"grouse": (binary, 0o755)} | {path: (data, 0o644) for path, data in papers.items()}
    return archive_of(out, f"grouse-{version}", files)


def archive_of(out: Path, name: str, files: dict[str, tuple[bytes, int]]) -> Path:
    """A folder of this name for this machine and system, in one compressed file."""
    name = f"{name}-{platform.machine()}-{sys.platform}"
    packed = tar({f"{name}/{path}": file for path, file in files.items()})
    path = out / f"{name}.tar.zst"
    subprocess.run(["zstd", "-q", "-19", "-T0", "-f", "-o", str(path)], input=packed, check=True)
    return path


def tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    """A tar of files by path, owned by root, without times."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, (data, mode) in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def debian(out: Path, version: str, binary: bytes, papers: dict[str, bytes], shell: Path) -> Path | None:
    """A package for Debian and its kin; None where there is no dpkg-deb."""
    if not shutil.which("dpkg-deb"):
        return None
    glibc = re.search(r"manylinux_(\d+)_(\d+)", manylinux(shell) or "manylinux_2_17")
    arch = DEBIAN.get(platform.machine(), platform.machine())
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        documents = root / "usr/share/doc/grouse"
        for path in (root / "DEBIAN", root / "usr/bin", documents):
            path.mkdir(parents=True)
        (root / "usr/bin/grouse").write_bytes(binary)
        (root / "usr/bin/grouse").chmod(0o755)
        licence = papers["LICENSE"].decode() + "\n\n" + papers["THIRD-PARTY.txt"].decode()
        (documents / "copyright").write_text(licence)
        (documents / "grouse.cdx.json").write_bytes(papers["grouse.cdx.json"])
        share = root / "usr/share"
        for path, data in {
            share / "man/man1/grouse.1.gz": gzip.compress(papers["grouse.1"], 9, mtime=0),
            share / "bash-completion/completions/grouse": papers["completions/grouse.bash"],
            share / "zsh/vendor-completions/_grouse": papers["completions/_grouse"],
            share / "fish/vendor_completions.d/grouse.fish": papers["completions/grouse.fish"],
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (documents / "changelog.gz").write_bytes(gzip.compress(papers["CHANGELOG.md"], 9, mtime=0))
        (root / "DEBIAN/control").write_text(
            f"Package: grouse\nVersion: {version}\nArchitecture: {arch}\nSection: database\nPriority: optional\n"
            f"Maintainer: grouse maintainers <grouse@localhost>\nInstalled-Size: {len(binary) // 1024}\n"
            f"Depends: libc6 (>= {glibc[1]}.{glibc[2]}), libgcc-s1\n"
            "Description: The GROUP BY engine\n SQL over Parquet, CSV, JSON and Arrow files, from a shell.\n"
        )
        path = out / f"grouse_{version}_{arch}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(path)],
                       check=True, stdout=subprocess.DEVNULL)
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
