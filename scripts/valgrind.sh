#!/usr/bin/env bash
# Runs the tests of aneforge-sys under valgrind: no wrong access, nothing lost. Each test is a process of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if ! command -v valgrind >/dev/null || ! cargo nextest --version >/dev/null 2>&1; then
  echo "SKIPPED: valgrind: needs valgrind and cargo-nextest"
  exit 0
fi
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER
export "$runner=valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"
cargo nextest run -p aneforge-sys --locked "$@"
