#!/usr/bin/env bash
# Checks, lints and links for Apple's arm64 on this machine, and executes the ABI test of aneforge-sys in a CPU emulator.
# What it needs is made once (minutes, about 250 MB) in ~/.cache/aneforge-darwin, by testing/darwin/setup.sh. Where a piece can't be
# had, the last line says so and starts with SKIPPED, and the exit code is 0.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

skip() {
  echo "SKIPPED: darwin: $*"
  exit 0
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || skip "made for Linux on x86-64; on a Mac the ordinary build does all this"
compiler=$(rustc -vV | sed -n 's/^commit-hash: //p')
cache=${XDG_CACHE_HOME:-$HOME/.cache}/aneforge-darwin/${compiler:-unknown}
if [ ! -e "$cache/ready" ]; then
  echo "setting up $cache"
  code=0
  nice testing/darwin/setup.sh "$cache" || code=$?
  [ "$code" != 3 ] || skip "a piece of the toolchain can't be had here; see above"
  [ "$code" = 0 ] || exit "$code"
fi

# A RUSTFLAGS of the caller would take the place of the target's flags, and with them the sysroot.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
apple=aarch64-apple-darwin
export SDKROOT=$cache/sdk CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER=rust-lld
export CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS="--sysroot $cache/sysroot -Clinker-flavor=ld64.lld -Clink-arg=-dead_strip_dylibs"
# There is no C compiler for Apple here. The one C file of all dependencies is a faster blake3; its build script takes this as the
# wish for the one in Rust, which is what a Mac without a C compiler gets.
export CARGO_FEATURE_PURE=1

echo "== clippy for $apple, libraries and programs"
cargo clippy --workspace --lib --bins --target "$apple" --locked -- -D warnings
echo "== link for $apple"
cargo build -p aneforge-darwin-abi -p aneforge-cli --target "$apple" --locked
# Without its engine the fake reads no files; it has a folder of its own, since elsewhere cargo builds it whole.
cargo build -p aneforge-fake-apple --no-default-features --lib --target "$apple" --target-dir "$target/fake" --locked
built=$target/$apple/debug
python3 testing/darwin/imports.py "$built/aneforge" "$built/aneforge-darwin-abi"
echo "== ABI test in the CPU emulator"
timeout 300 "$cache/venv/bin/python" testing/darwin/machorun.py "$built/aneforge-darwin-abi" "$target/fake/$apple/debug/libfake_apple.dylib"
echo "darwin: checked, linked, and every call made in the CPU emulator; nothing skipped"
