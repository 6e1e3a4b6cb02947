#!/usr/bin/env bash
# All checks of the project. The first run installs the oracles (about 2 GB); later ones work offline.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/venv.sh test
scripts/venv.sh upstream
scripts/fetch_minilm.sh
scripts/fixtures.sh
scripts/lint.sh
cargo test --workspace --all-features --locked --doc
# Every generated use of the conformance suite, not only the few that a plain test run makes.
export ANEFORGE_WHOLE_SUITE=1
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --workspace --all-features --locked "$@"
else
  cargo test --workspace --all-features --locked --lib --bins --tests --examples "$@"
fi
scripts/python.sh
