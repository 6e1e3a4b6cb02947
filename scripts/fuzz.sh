#!/usr/bin/env bash
# Without arguments: 100,000 random graphs compared on all devices, then, where cargo-fuzz is installed, every fuzz
# target for SECONDS_EACH (default 60) seconds.
#   scripts/fuzz.sh --graphs N --seed S ...   graphs alone, with these options (--help lists them)
#   scripts/fuzz.sh TARGET...                 these fuzz targets alone
# ANEFORGE_FUZZ_SEED sets the first seed; the run prints the one it took. What fails is made small and written to
# .cache/fuzz/graphs-findings and .cache/fuzz/<target>-findings.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ $# -eq 0 || $1 == -* ]]; then
  cargo build --release --locked -p aneforge-conform --example fuzz_graphs
  "$target/release/examples/fuzz_graphs" "$@"
  [ $# -eq 0 ] || exit 0
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz.sh: cargo-fuzz is missing, so the fuzz targets were not run; install it with: cargo install cargo-fuzz" >&2
  # Those that were asked for by name must not seem to have passed.
  exit $(($# > 0 ? 3 : 0))
fi
# Sanitizer flags are unstable; the pinned toolchain takes them with this variable.
export RUSTC_BOOTSTRAP=1
if [ $# -eq 0 ]; then
  targets=$(cargo fuzz list --fuzz-dir testing/fuzz)
  # shellcheck disable=SC2086  # names of targets have no spaces
  set -- $targets
fi
for name in "$@"; do
  mkdir -p ".cache/fuzz/$name" ".cache/fuzz/$name-findings"
  # The first folder takes what is new; the committed corpus only seeds.
  cargo fuzz run --fuzz-dir testing/fuzz "$name" ".cache/fuzz/$name" "testing/fuzz/corpus/$name" -- \
    -max_total_time="${SECONDS_EACH:-60}" "-artifact_prefix=$root/.cache/fuzz/$name-findings/"
done
