#!/bin/sh
# Puts the driver where driver managers look for one, so that it is found by the name "grouse".
#
# In: a folder, or none for this user's. Out: the library and its manifest there.
# Invariant: the manifest names the library by its full path.
set -eu
case $(uname) in
Darwin) default="$HOME/Library/Application Support/ADBC/Drivers" ;;
*) default="${XDG_CONFIG_HOME:-$HOME/.config}/adbc/drivers" ;;
esac
to=${1:-$default}
from=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$to"
to=$(cd "$to" && pwd)
for library in "$from"/libadbc_driver_grouse.*; do
    name=$(basename "$library")
    # A library that a process has loaded stays whole: the new one is another file.
    cp "$library" "$to/.$name.new"
    mv "$to/.$name.new" "$to/$name"
done
escaped=$(printf '%s' "$to" | sed 's/[\\&|]/\\&/g')
sed "s|\"libadbc_driver_grouse|\"$escaped/libadbc_driver_grouse|" "$from/grouse.toml" > "$to/grouse.toml"
echo "installed $to/grouse.toml"
