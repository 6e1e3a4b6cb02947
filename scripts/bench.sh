#!/usr/bin/env bash
# Benchmarks with two threads; the comparisons interleave our runs with the other side's.
# Arguments go to `cargo bench`, e.g. `scripts/bench.sh -p aneforge-runtime`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/venv.sh test
scripts/venv.sh upstream
scripts/fetch_minilm.sh
scripts/fixtures.sh
export ANEFORGE_BENCH_MODELS=$root/.cache/bench
export ANEFORGE_PYTHON_SCRIPTS=$root/testing/python
export ANEFORGE_THREADS=2 RAYON_NUM_THREADS=2
"$ANEFORGE_PYTHON" testing/python/onnx_models.py "$ANEFORGE_BENCH_MODELS" \
  --torchvision "$ANEFORGE_FIXTURES/torchvision" --minilm "$ANEFORGE_MINILM"
if [ $# -eq 0 ]; then set -- -p aneforge --bench models --bench training; fi
cargo bench --locked "$@"
