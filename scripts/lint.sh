#!/usr/bin/env bash
# Formatting and lints of the Rust and, where the test environment is there, the Python sources.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo fmt --all --check
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
if [ -x .venv/bin/ruff ]; then
  .venv/bin/ruff check --quiet --config testing/python/ruff.toml testing/python scripts
  .venv/bin/ruff format --check --quiet --config testing/python/ruff.toml testing/python scripts
  .venv/bin/ruff check --quiet --config python/ruff.toml python
  .venv/bin/ruff format --check --quiet --config python/ruff.toml python
fi
