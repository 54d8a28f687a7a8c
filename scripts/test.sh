#!/usr/bin/env bash
# make test: installs what is needed, then the stages of CI, with the seconds of each; last of all ctest on the release
# build, whose closing line ends the output.
#   JIZI_STAGES="asan tsan lint release" chooses stages; JIZI_SIM_SEEDS and JIZI_KILL_ROUNDS set the length of the random ones.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
stages=${JIZI_STAGES:-asan tsan lint release}
begin=$SECONDS
exec 2>&1  # One stream, so that nothing of stderr comes after the closing line.

stage() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  echo "== $name: $((SECONDS - start)) s"
}
tests() {  # A build folder, then ctest's own arguments. Two at a time: most tests wait more than they compute.
  local build=$1
  shift
  ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error "$@"
}

asan() {  # Memory and undefined behaviour, in one tree without torch; fuzz corpora replayed; 500 simulator seeds.
  cmake --preset asan >/dev/null
  cmake --build build/asan -j "$jobs" -- --quiet
  JIZI_SIM_SEEDS=500 JIZI_KILL_ROUNDS=2 tests build/asan -LE 'bench|integration'
}
tsan() {  # Races, where there are threads. Reports go to files, of which those of gRPC's own templates are left out.
  cmake --preset tsan >/dev/null
  cmake --build build/tsan -j "$jobs" --target jizi_tsan_tests -- --quiet
  rm -rf build/tsan/tsan_reports && mkdir build/tsan/tsan_reports
  JIZI_SIM_SEEDS=50 JIZI_KILL_ROUNDS=1 tests build/tsan -R '^(persistent_vector|engine|rpc|workers|trial_helper)'
  scripts/tsan_reports.py build/tsan/tsan_reports
}
lint() { scripts/lint.sh changed; }
release_build() {
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" -- --quiet
}
release_tests() {
  JIZI_SIM_SEEDS=${JIZI_SIM_SEEDS:-10000} JIZI_KILL_ROUNDS=${JIZI_KILL_ROUNDS:-20} tests build/release
}

stage packages scripts/deps.sh --torch --lint
for name in $stages; do [ "$name" = release ] || stage "$name" "$name"; done
if [[ " $stages " != *' release '* ]]; then
  echo "all stages: $((SECONDS - begin)) s"
  exit
fi
stage 'release, build' release_build
echo "all stages so far: $((SECONDS - begin)) s"
echo '== release, tests'
release_tests
