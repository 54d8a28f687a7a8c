#!/usr/bin/env bash
# fuzz.sh SECONDS: libFuzzer on every target for that long; new inputs go to build/fuzz/corpus/, crashes to build/fuzz/.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
scripts/deps.sh --lint
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target sweep_file_fuzz request_fuzz stored_events_fuzz -- --quiet
cd build/fuzz
for target in sweep_file request stored_events; do
  mkdir -p "corpus/$target"
  "./${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 "corpus/$target" "../../tests/fuzz/corpus/$target"
done
