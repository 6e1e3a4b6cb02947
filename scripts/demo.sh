#!/usr/bin/env bash
# A pretrained sentence encoder, compiled to one MIL program and run from it on this machine, with
# its answers held against onnxruntime's. The first run builds and downloads; later ones are offline.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo build --release --locked --quiet --package aneforge-cli
scripts/venv.sh demo
scripts/fetch_minilm.sh
mkdir -p .cache/demo
.venv-demo/bin/python testing/python/minilm_reference.py .cache/minilm \
  --sentences scripts/demo_sentences.txt --output .cache/demo/reference.npy
# Compiled programs stay in this folder too, where `make clean` finds them.
ANEFORGE_CACHE_DIR=$root/.cache/aneforge exec "$target/release/aneforge" embed .cache/minilm \
  --file scripts/demo_sentences.txt --reference .cache/demo/reference.npy "$@"
