#!/usr/bin/env bash
# A virtual environment with the Python package of trial-helper/python, built from this tree as a user would: for its tests.
# From PyPI: grpcio and protobuf, and grpcio-tools for the build. Made again only when the sources have changed.
#   scripts/python_env.sh FOLDER          exit 77 (and says so): PyPI cannot be reached; 1: the package does not build
set -euo pipefail
folder=$(realpath -m "${1:?usage: scripts/python_env.sh FOLDER}")
cd "$(dirname "$0")/.."

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
sources=(trial-helper/python/pyproject.toml trial-helper/python/setup.py trial-helper/python/README.md trial-helper/python/src/jizi/py.typed
  trial-helper/python/src/jizi/*.py proto/jizi/v1/*.proto scripts/python_env.sh)
key=$(cat "${sources[@]}" | sha256sum)
[ "$(cat "$folder/key" 2>/dev/null)" = "$key" ] && exit 0
rm -f "$folder/key"

if [ ! -x "$folder/venv/bin/pip" ] && ! python3 -m venv "$folder/venv" >"$folder/log" 2>&1; then
  cat "$folder/log" >&2
  echo "python_env.sh: python3 makes no virtual environment here; on Debian: apt-get install python3-venv" >&2
  exit 1
fi
pip=("$folder/venv/bin/pip" --disable-pip-version-check --quiet --retries 2 --timeout 30)
if ! "${pip[@]}" install grpcio protobuf >"$folder/log" 2>&1; then
  tail -n 5 "$folder/log" >&2
  echo "SKIPPED: the Python package is not tested: grpcio and protobuf cannot be had from PyPI here" >&2
  exit 77
fi

# A copy: building leaves its folders beside the sources.
rm -rf "$folder/source"
for source in "${sources[@]}"; do
  mkdir -p "$folder/source/$(dirname "$source")"
  cp "$source" "$folder/source/$source"
done
"${pip[@]}" install --force-reinstall --no-deps "$folder/source/trial-helper/python"
echo "$key" >"$folder/key"
