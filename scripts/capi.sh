#!/usr/bin/env bash
# The C library: build/lib/libaneforge.so (.dylib on macOS) and the headers in build/include. PREFIX names another
# folder than build. The crate's own file is called libaneforge_capi, since the Rust facade is `aneforge` already.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prefix=${PREFIX:-build}
ending=so
[ "$(uname)" = Darwin ] && ending=dylib
cargo build --release --locked -p aneforge-capi
mkdir -p "$prefix/lib" "$prefix/include"

# Whole or not at all: a running program may have the old file mapped.
place() {
  cp "$1" "$2.$$"
  mv -f "$2.$$" "$2"
}
place "$target/release/libaneforge_capi.$ending" "$prefix/lib/libaneforge.$ending"
for header in aneforge.h ane_e5rt.h; do
  place "crates/capi/include/$header" "$prefix/include/$header"
done
echo "$prefix/lib/libaneforge.$ending, $prefix/include/{aneforge,ane_e5rt}.h" >&2
