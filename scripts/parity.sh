#!/usr/bin/env bash
# Trains convolutional nets on Fashion-MNIST here and in PyTorch, from the same weights over the same batches, and compares their
# accuracy on all test images. Ends with 1 where means differ by more than 1.0 point or a seed by more than 1.5.
#
# Each finished run stays in build/parity, so that an interrupted comparison goes on where it was; remove the folder to begin anew.
# The table goes to docs/parity.md. `--steps N` tries it with a few steps: in build/parity-N, its table to standard output, not judged.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

steps=
if [ "${1:-}" = --steps ]; then steps=${2:?usage: scripts/parity.sh [--steps N]}; fi
scripts/venv.sh test
cargo build --release --locked --quiet -p aneforge-train --example parity
ours=$target/release/examples/parity
twin="$ANEFORGE_PYTHON testing/python/parity.py"
folder=build/parity${steps:+-$steps}
mkdir -p "$folder"
export ANEFORGE_THREADS=2 RAYON_NUM_THREADS=2

# Where the data set is: the cache that `aneforge train` fills, here below build.
export ANEFORGE_CACHE_DIR=${ANEFORGE_CACHE_DIR:-$root/.cache/aneforge}
data=$ANEFORGE_CACHE_DIR/fashion-mnist

# keep FILE COMMAND...: the command's output, whole or not at all, unless it is there.
keep() {
  local file=$1
  shift
  if [ -s "$file" ]; then return; fi
  echo "$(date +%T) $(basename "$file" .json)" >&2
  "$@" >"$file.new"
  mv "$file.new" "$file"
}

if [ ! -s "$data/t10k-labels-idx1-ubyte" ]; then
  # Any step of any task fetches it.
  cargo run --release --locked --quiet -p aneforge-cli -- train fashion-mlp --device cpu --steps 1 >/dev/null
fi
# group TASK EPOCHS DEVICE...: all seeds of a net.
group() {
  local task=$1 epochs=$2 seed device
  shift 2
  for seed in 1 2 3; do
    keep "$folder/start-$task-$seed.json" "$ours" start "$task" "$seed" "$epochs" "$data"
    keep "$folder/$task.pytorch.$seed.json" $twin train "$folder/start-$task-$seed.json" "$data" ${steps:+--steps "$steps"}
    for device in "$@"; do
      keep "$folder/$task.$device.$seed.json" "$ours" run "$task" "$seed" "$epochs" "$data" "$device" $steps
    done
  done
}
group fashion-cnn 3 cpu
group fashion-cnn-small 2 cpu emulator:m1
if [ -n "$steps" ]; then
  $twin table "$folder"
else
  $twin table "$folder" --output docs/parity.md --judge
fi
