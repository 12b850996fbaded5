#!/bin/sh
# Makes the virtual environment $1 with the packages of $2; `$1/ready` is its stamp. Works where python3 comes without venv.
set -eu
folder=$1 requirements=$2
cd "${0%/*}/.."

if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$folder"
    if ! python3 -m venv "$folder" >/dev/null 2>&1; then
        rm -rf "$folder"
        python3 -m virtualenv --version >/dev/null 2>&1 \
            || python3 -m pip install --quiet --user virtualenv 2>/dev/null \
            || python3 -m pip install --quiet --user --break-system-packages virtualenv 2>/dev/null \
            || { echo "grouse needs what this machine lacks: Python's venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
        python3 -m virtualenv --quiet "$folder"
    fi
fi
echo "installing Python packages of $requirements into $folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
touch "$folder/ready"
