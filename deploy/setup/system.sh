#!/usr/bin/env bash
# Installs what building needs beyond a Rust toolchain and a C compiler, and says what and why.
#
#   g++             compiles RocksDB, the storage engine of cara-server
#   libclang-dev    bindgen reads RocksDB's C header with it
#
# Does nothing when both are there. Debian and Ubuntu only; elsewhere it names what is missing and exits 1.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

# libclang-cpp, which other packages bring, is another library: bindgen can not use it.
have_libclang() {
  [ -n "${LIBCLANG_PATH:-}" ] && return 0
  local f
  for f in /usr/{lib/llvm-*/lib,lib/*,lib64,local/lib}/libclang{.so*,-[0-9]*.so*}; do
    [ -e "$f" ] && return 0
  done
  return 1
}

command -v cargo >/dev/null || { say "no cargo in PATH: install Rust first (rustup, stable 1.95 or newer)"; exit 1; }

missing=()
command -v c++ >/dev/null || { say "g++ is missing: RocksDB, the storage engine, is C++"; missing+=(g++); }
have_libclang || { say "libclang is missing: bindgen reads RocksDB's header with it"; missing+=(libclang-dev); }
[ "${#missing[@]}" -gt 0 ] || exit 0

here=$(cd "$(dirname "$0")" && pwd)
"$here/apt.sh" setup "what building needs beyond Rust" "${missing[@]}"
