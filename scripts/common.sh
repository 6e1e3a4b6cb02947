# Sourced by the other scripts: where things are, for child processes too. All paths are absolute,
# since cargo runs each test in its crate's folder.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export ANEFORGE_PYTHON=$root/.venv/bin/python
export ANEFORGE_UPSTREAM_PYTHON=$root/.venv-upstream/bin/python
export ANEFORGE_FIXTURES=$root/.cache/fixtures
export ANEFORGE_MINILM=$root/.cache/minilm
target=${CARGO_TARGET_DIR:-$root/target}

# sha256 of the named files together, in hex.
hash_of() {
  cat "$@" | "${PYTHON:-python3}" -c \
    'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}
