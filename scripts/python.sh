#!/usr/bin/env bash
# Builds the Python package's compiled module with the workspace's development profile, puts it beside the package's sources and
# runs the package's tests and type checks. `pip install .` makes the optimised one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/venv.sh python
cargo build --locked -p aneforge-py
case $(uname -s) in
  Darwin) built=lib_core.dylib ;;
  *) built=lib_core.so ;;
esac
# Under a new name and renamed: a process that has the old one loaded keeps it.
cp "$target/debug/$built" python/aneforge/.core.new
mv python/aneforge/.core.new python/aneforge/_core.abi3.so

python=.venv-python/bin/python
# The oracle PyTorch, where the test environment is there; the package's own environment comes first.
oracles=$(ls -d .venv/lib/python*/site-packages 2>/dev/null || true)
own=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export PYTHONPATH=$root/python:$own:${oracles:+$root/$oracles}
"$python" -m mypy --config-file python/mypy.ini --strict python/aneforge python/tests/sample.py
"$python" -m pytest -q python/tests "$@"
