#!/bin/sh
# Runs libFuzzer on each target of fuzz/ for so many seconds.
# In: the folder of the house's tools, seconds; names of targets, or none for all. Out: inputs that found something new in
# fuzz/grown (not in the tree), those that ended a target in fuzz/artifacts; exit status 1 on one of these.
# Where a nightly toolchain or cargo-fuzz cannot be had, it says so and runs nothing.
set -eu
tools=$1
seconds=$2
shift 2
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: NOT RUN, there is no nightly toolchain (rustup toolchain install nightly)"
    exit 0
fi
PATH=$tools/bin:$PATH
if ! cargo fuzz --version >/dev/null 2>&1 && ! cargo install --locked --root "$tools" cargo-fuzz; then
    echo "fuzz: NOT RUN, cargo-fuzz cannot be had (cargo install cargo-fuzz)"
    exit 0
fi

# The versions that everything else is built with; cargo adds libFuzzer's own.
[ -f fuzz/Cargo.lock ] || cp Cargo.lock fuzz/Cargo.lock
[ $# -gt 0 ] || set -- $(cd fuzz/corpus && ls)
bad=
for target; do
    mkdir -p "fuzz/grown/$target"
    echo "fuzz: $target, $seconds s"
    # The library's own limits: 2 GiB of memory, 30 s for one input.
    CARGO_TARGET_DIR=$CARGO_TARGET_DIR-fuzz cargo +nightly fuzz run "$target" "fuzz/grown/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 || bad="$bad $target"
done
[ -z "$bad" ] || { echo "fuzz: FAULTS in$bad, see fuzz/artifacts"; exit 1; }
