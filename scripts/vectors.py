"""How wide the hot loops are: instructions that compute with vector registers, in the machine code of the library.

In: a library or binary with symbols, as `make build` leaves it. Out: per group of functions how many there are, how many
of them compute with 256 bits, and their instructions with 256 and with 128 bits.
Invariant: moves do not count. Not here: how fast the loops are (`grouse-kernels`).
"""

import re
import subprocess
import sys
from collections import Counter

GROUPS = {
    "hash of words": r"PackedLayout::hash|keys::packed::hash_wide",
    "packed keys": r"PackedLayout::encode|packed::Words::place",
    "unpacked keys": r"keys::packed::unpack_column",
    "partition": r"grouse_kernels::scatter::destinations",
    "sum, avg": r"states::(sum|avg|avg_integers)::.*::update",
    "min, max": r"states::min_max::MinMax<.*::update",
    "decimals": r"grouse_kernels::narrow::",
}
INTEGERS = "add|sub|mul|and|or|xor|sll|srl|sra|min|max|cmp|shuf|unpck|blend|gather|perm|movmsk"
FLOATS = "add|sub|mul|div|min|max|cmp|and|or|xor|blend|cvt"
COMPUTES = re.compile(rf"^v(p({INTEGERS})|({FLOATS})p[ds])")


def main() -> None:
    library = sys.argv[1]
    for name, places in functions(library).items():
        found = [computing(library, start, size) for start, size in places]
        wide = sum(count["ymm"] > 0 for count in found)
        count = sum(found, Counter())
        print(f"{name:16} functions {len(places):3}  wide {wide:3}  256 bits {count['ymm']:5}  128 bits {count['xmm']:5}")


def functions(library: str) -> dict[str, list[tuple[int, int]]]:
    """Where the functions of each group begin, and their bytes."""
    command = ["nm", "-S", "-C", "--defined-only", library]
    symbols = [line.split(" ", 3) for line in output(command).splitlines()]
    code = [parts for parts in symbols if len(parts) == 4 and parts[2] in "tT" and "drop_in_place" not in parts[3]]
    return {
        name: [(int(start, 16), int(size, 16)) for start, size, _, symbol in code if re.search(pattern, symbol)]
        for name, pattern in GROUPS.items()
    }


def computing(library: str, start: int, size: int) -> Counter:
    """Instructions of one function that compute, by the kind of register."""
    places = [f"--start-address={start}", f"--stop-address={start + size}"]
    lines = output(["objdump", "-d", "--no-show-raw-insn", *places, library]).splitlines()
    code = [line.split("\t")[1].strip() for line in lines if "\t" in line]
    return Counter("ymm" if "%ymm" in one else "xmm" for one in code if COMPUTES.match(one))


def output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
