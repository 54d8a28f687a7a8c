#!/usr/bin/env bash
# Runs a test with the Python that has the package:   with_env.sh BUILD_DIR TEST.py   (77: skipped, and said: no PyPI here)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/../../../scripts/python_env.sh" "$1/python"
exec "$1/python/venv/bin/python" "$2" "$1"
