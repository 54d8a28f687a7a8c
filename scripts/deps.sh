#!/usr/bin/env bash
# Installs what Jizi is built with: Debian packages, and libtorch from the PyPI wheel into .venv. Says so before it does.
#   scripts/deps.sh [--torch] [--lint] [--check]      (--check: only say what is missing; exit 1 if anything is)
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build pkg-config ccache mold git
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev   # the service's wire
  libsqlite3-dev libsqlitecpp-dev sqlite3                                              # results
  libeigen3-dev libspdlog-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev libssl-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev openssl python3                           # tests
)
lint_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev)
torch_packages=(python3-venv dataset-fashion-mnist)
torch_wheels=(torch==2.11.0 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*')

want=("${packages[@]}")
torch=0 check=0
for argument in "$@"; do
  case "$argument" in
    --torch) torch=1; want+=("${torch_packages[@]}") ;;
    --lint) want+=("${lint_packages[@]}") ;;
    --check) check=1 ;;
    *) echo "deps.sh: unknown option $argument; it takes --torch, --lint, --check" >&2; exit 2 ;;
  esac
done

# A person may have another torch; JIZI_TORCH_DIR names its folder.
need_wheel=0
if [ "$torch" = 1 ] && [ -z "${JIZI_TORCH_DIR:-}" ] && ! ls .venv/lib/python3*/site-packages/torch/lib/libtorch_cpu.so >/dev/null 2>&1; then
  need_wheel=1
fi
missing=()
for package in "${want[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && [ "$need_wheel" = 0 ] && exit 0

[ "$check" = 1 ] && echo "Jizi needs, and does not find here:" || echo "Jizi needs, and will now install:"
[ ${#missing[@]} -gt 0 ] && echo "  Debian packages: ${missing[*]}"
[ "$need_wheel" = 1 ] && echo "  into .venv (530 MB to download, 1.3 GB on disk): ${torch_wheels[*]}"
[ "$check" = 1 ] && exit 1

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get here; install the packages above by your system's own means, then run make again" >&2
    exit 1
  fi
  sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ "$need_wheel" = 1 ]; then
  [ -x .venv/bin/pip ] || python3 -m venv .venv
  .venv/bin/pip install -q --disable-pip-version-check --no-deps "${torch_wheels[@]}"
fi
