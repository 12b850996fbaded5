#!/bin/sh
# Copies a binary without its symbols; these go into a file beside the copy, where debuggers and profilers find them.
#
# In: the binary, the copy. Out: the copy and `<copy>.debug`; nothing where the copy is not older than the binary.
# Without binutils the copy keeps its symbols.
set -eu
from=$1 to=$2
[ "$from" -ef "$to" ] && exit 0
[ -e "$to" ] && [ ! "$from" -nt "$to" ] && exit 0
mkdir -p "$(dirname "$to")"
if command -v objcopy >/dev/null 2>&1 && strip -o "$to.new" "$from" 2>/dev/null; then
    objcopy --only-keep-debug "$from" "$to.debug"
    objcopy --add-gnu-debuglink="$to.debug" "$to.new"
else
    cp -f "$from" "$to.new"
fi
mv -f "$to.new" "$to"
