#!/usr/bin/env bash
# lint.sh changed|all: clang-format, clang-tidy, and clang's warnings (-Wthread-safety among them) as errors, on files that include no torch.
# `changed` means since the merge base with origin/main; on origin/main itself, what the commits of its last day changed.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-changed}
scripts/deps.sh --lint

mapfile -t all < <(git ls-files '*.h' '*.cc')
if [ "$mode" = all ]; then
  files=("${all[@]}")
else
  nothing=$(git hash-object -t tree /dev/null)
  base=$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD)
  if [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD)" ]; then
    day_before=$(($(git log -1 --format=%ct) - 86400))
    base=$(git rev-list -1 --before="$day_before" HEAD)
    base=${base:-$nothing}
  fi
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$base" -- '*.h' '*.cc'; git ls-files --others --exclude-standard -- '*.h' '*.cc'; } | sort -u)
fi
if [ ${#files[@]} -eq 0 ]; then
  echo "lint: no C++ file changed"
  exit 0
fi
clang-format-19 --dry-run -Werror "${files[@]}"

cmake --preset lint >/dev/null
# Generated headers first; then our own code through clang, for its warnings.
cmake --build build/lint --target jizi_proto jizi_store_events -- --quiet
# What is compiled: a file itself, or the unit that includes it with others of its room.
mapfile -t units < <(
  for file in "${files[@]}"; do
    [[ $file == *.cc ]] || continue
    if grep -q "\"file\": \"$PWD/$file\"" build/lint/compile_commands.json; then echo "$file"; fi
    grep -rlF --include='unity_*.cxx' "\"$PWD/$file\"" build/lint || true
  done | sort -u)
# The path-sensitive analyzer takes as long as all the rest: a change of most of the tree leaves it to lint-all.
checks=()
[ "$mode" = changed ] && [ ${#units[@]} -gt 40 ] && checks=(--checks=-clang-analyzer-*)
if [ ${#units[@]} -gt 0 ]; then
  printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet "${checks[@]}" -p build/lint \
    2> >(grep -v -E 'warnings? (generated|treated)|Suppressed|Use -header-filter' >&2)
fi
echo "lint: ${#files[@]} files formatted, ${#units[@]} units clean"
