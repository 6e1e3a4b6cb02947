#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH (default 60) seconds, or only the targets named.
# Inputs that crash land in .cache/fuzz/<target>-findings.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz.sh: cargo-fuzz is missing; install it with: cargo install cargo-fuzz" >&2
  exit 3
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
