#!/usr/bin/env bash
# Makes one of the project's Python environments at the repository's root.
#
#   scripts/venv.sh test       .venv            oracles of the test suite (PyTorch included)
#   scripts/venv.sh demo       .venv-demo       onnx and onnxruntime for `make demo`
#   scripts/venv.sh python     .venv-python     what builds and tests the Python package in python/
#   scripts/venv.sh upstream   .venv-upstream   the Python package that MIL text is compared with
#
# A stamp holding the hash of all that went in is written last, so an environment that is complete
# costs nothing and no network to check, and one that was interrupted is made anew.
# PYTHON names the interpreter to use (default python3; 3.11 to 3.13, which the pins have wheels for).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
requirements=testing/python/requirements
kind=${1:?usage: scripts/venv.sh test|demo|python|upstream}
case $kind in
  test) folder=.venv; files=(test.txt torch.txt torch-light.txt) ;;
  demo) folder=.venv-demo; files=(demo.txt) ;;
  python) folder=.venv-python; files=(python.txt) ;;
  upstream) folder=.venv-upstream; files=(upstream.txt) ;;
  *) echo "venv.sh: no environment is called '$kind'; say test, demo, python or upstream" >&2; exit 2 ;;
esac

# Where the stamp is, what it must say: this recipe's version, the pins, the stubs, the interpreter.
recipe=1
stamp=$folder/.complete
key() {
  {
    (cd "$requirements" && cat constraints.txt "${files[@]}")
    echo "$recipe $kind"
    cat scripts/torch_stubs.py
    "$python" -c 'import sys; print(sys.version, sys.base_prefix, sys.platform)'
  } | "$python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}
wanted=$(key)
complete() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; }
if complete; then exit 0; fi

# One maker at a time; whoever waited may find the work done.
mkdir -p .cache
if command -v flock >/dev/null; then
  exec 9>".cache/venv-$kind.lock"
  flock 9
  if complete; then exit 0; fi
fi

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || {
  echo "venv.sh: the pinned packages need Python 3.11 to 3.13; set PYTHON to one" >&2
  exit 3
}
echo "making $folder (once; some minutes and the network)" >&2
rm -rf "$folder"
"$python" -m venv "$folder"
install() {
  "$folder/bin/python" -m pip --disable-pip-version-check --no-input install --quiet \
    --constraint "$requirements/constraints.txt" "$@"
}
case $kind in
  test)
    install -r "$requirements/test.txt" -r "$requirements/torch-light.txt"
    install --no-deps -r "$requirements/torch.txt"
    "$folder/bin/python" scripts/torch_stubs.py
    "$folder/bin/python" -W ignore - 2>"$folder/imports.log" <<'PY' || { cat "$folder/imports.log" >&2; exit 1; }
import coremltools, numpy, onnx, onnxruntime, safetensors, tokenizers, torch, torchvision
from coremltools.libmilstoragepython import _BlobStorageReader
assert (torch.ones(2, 2) @ torch.ones(2, 2)).sum() == 8 and not torch.cuda.is_available()
PY
    ;;
  demo)
    install -r "$requirements/demo.txt"
    "$folder/bin/python" -c 'import numpy, onnx, onnxruntime, tokenizers'
    ;;
  python)
    install -r "$requirements/python.txt"
    "$folder/bin/python" -c 'import mypy, numpy, pytest'
    ;;
  upstream)
    install --no-deps -r "$requirements/upstream.txt"
    # Its import asks the system for the chip's name; the variable answers for it.
    ANEFORGE_TARGET=h13 ANEFORGE_NO_AUTOBUILD=1 "$folder/bin/python" -c 'import aneforge, numpy'
    ;;
esac
printf '%s\n' "$wanted" >"$stamp"
