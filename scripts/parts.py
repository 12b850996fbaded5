"""What a build is made of: every crate in it, as a CycloneDX list and as their licences.

In: a package of this workspace. Out: `bom` (CycloneDX 1.6, the crates with version, licence and checksum) and `notices` (text).
Invariant: the crates are those that cargo links for this machine: normal dependencies, without macros and build scripts. A crate that
brings no licence file is named with the licence that its manifest states.
Not here: whether a licence may be used (`deny.toml`).
"""

import hashlib
import json
import re
import subprocess
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")


def version() -> str:
    """The version of this workspace."""
    return re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def crates(package: str) -> list[dict]:
    """The crates that are linked into a package of this workspace, without the workspace's own, by name and version."""
    host = re.search(r"host: (.+)", output("rustc", "-vV"))[1]
    meta = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host))
    packages = {one["id"]: one for one in meta["packages"]}
    nodes = {one["id"]: one for one in meta["resolve"]["nodes"]}
    waiting = [one["id"] for one in meta["packages"] if one["name"] == package and one["source"] is None]
    if not waiting:
        raise SystemExit(f"no package of this workspace is named {package}")
    seen = set(waiting)
    while waiting:
        for dep in nodes[waiting.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dep["dep_kinds"])
            if linked and dep["pkg"] not in seen and not is_macro(packages[dep["pkg"]]):
                seen.add(dep["pkg"])
                waiting.append(dep["pkg"])
    linked = (packages[one] for one in seen if packages[one]["source"] is not None)
    return sorted(linked, key=lambda one: (one["name"], one["version"]))


def is_macro(package: dict) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def bom(name: str, version: str, linked: list[dict]) -> str:
    """A CycloneDX list; the same for the same crates."""
    sums = checksums()
    components = []
    for one in linked:
        purl = f"pkg:cargo/{one['name']}@{one['version']}"
        component = {"type": "library", "bom-ref": purl, "name": one["name"], "version": one["version"], "purl": purl}
        if one["license"]:
            component["licenses"] = [{"expression": one["license"].replace("/", " OR ")}]
        if (one["name"], one["version"]) in sums:
            component["hashes"] = [{"alg": "SHA-256", "content": sums[one["name"], one["version"]]}]
        components.append(component)
    text = json.dumps(components, sort_keys=True)
    product = {"type": "application", "bom-ref": "product", "name": name, "version": version,
               "licenses": [{"expression": "Apache-2.0"}]}
    return json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'{name} {version} {text}')}",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": "product", "dependsOn": [one["bom-ref"] for one in components]}],
    }, indent=1) + "\n"


def checksums() -> dict[tuple[str, str], str]:
    """What Cargo.lock says of each crate's archive."""
    lock = (ROOT / "Cargo.lock").read_text()
    found = re.findall(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"', lock)
    return {(name, version): checksum for name, version, checksum in found}


def notices(linked: list[dict]) -> str:
    """Each licence text once, under the crates that bring it."""
    bearers: dict[str, list[str]] = {}
    written: dict[str, str] = {}
    for one in linked:
        title = f"{one['name']} {one['version']} ({one['license'] or 'see its licence file'})"
        found = [path.read_text(errors="replace").strip() for path in licence_files(Path(one["manifest_path"]).parent)]
        for text in found or [f"The crate states {one['license']} and brings no text."]:
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            written.setdefault(key, text)
            bearers.setdefault(key, []).append(title)
    head = "Software of others in this build, and its licences.\n"
    parts = ["\n".join(bearers[key]) + "\n\n" + text for key, text in written.items()]
    return (("\n\n" + "=" * 100 + "\n").join([head, *parts])) + "\n"


def licence_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(LICENCE_NAMES))
