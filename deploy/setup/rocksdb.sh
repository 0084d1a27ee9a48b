#!/usr/bin/env bash
# Builds RocksDB's static library once per machine and prints the folder that holds it.
#
# cargo would compile RocksDB's 343 C++ files again for every profile, at more than half an hour of CPU each time.
# Here the very sources of the pinned `librocksdb-sys` crate are compiled as a few large translation units
# ("unity build") into the user's cache folder, keyed by crate version, compiler and flags. The Makefile hands the
# folder to cargo as ROCKSDB_LIB_DIR. A plain `cargo build` without it still works, slowly.
#
# usage: rocksdb.sh        prints the folder on stdout, progress on stderr
# env:   CARA_CACHE        cache root (default: $XDG_CACHE_HOME/caravanserai or ~/.cache/caravanserai)
#        CXX, AR, JOBS     compiler, archiver, parallel jobs (default: c++, ar, as cores and memory allow)
# exit:  0 the folder is on stdout; 3 this machine can't have it, cargo compiles RocksDB itself; else a failure
set -euo pipefail
cd "$(dirname "$0")/../.."

CXX=${CXX:-c++}
AR=${AR:-ar}
# Few large batches, since headers are read again in each: 8 cost a third less than 16, and take 2 GB of memory per job.
BATCHES=8
FLAGS=(-std=c++20 -O2 -g0 -fPIC -DNDEBUG -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION -DOS_LINUX
  -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT -DROCKSDB_AUXV_GETAUXVAL_PRESENT
  -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT -include cstdint -w)

say() { printf 'rocksdb: %s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ]; then
  say "only Linux has the prebuilt library; cargo will compile RocksDB itself (slow)."
  exit 3
fi

# A job takes up to 2 GB: no more at a time than fit into memory.
if [ -z "${JOBS:-}" ]; then
  JOBS=$(nproc)
  fits=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null || echo 0) / 1024 / 2500))
  [ "$fits" -ge "$JOBS" ] || JOBS=$((fits > 0 ? fits : 1))
fi

version=$(grep -A1 '^name = "librocksdb-sys"' Cargo.lock | sed -n 's/^version = "\(.*\)"/\1/p')
[ -n "$version" ] || { say "librocksdb-sys is not in Cargo.lock"; exit 1; }
key=$(printf '%s\n' "librocksdb-sys-$version" "$("$CXX" --version | head -1)" "$(uname -m)" "${FLAGS[*]}" |
  sha256sum | cut -c1-16)
cache=${CARA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caravanserai}
out=$cache/rocksdb-$key
mkdir -p "$cache"

# One builder at a time: two `make` runs must not write the same archive.
exec 9>"$out.lock"
flock 9
if [ -f "$out/librocksdb.a" ]; then
  printf '%s\n' "$out"
  exit 0
fi

# The crate's own sources, wherever cargo unpacks them.
cargo fetch --locked --quiet
manifest=$(cargo metadata --locked --format-version 1 2>/dev/null |
  grep -o '"manifest_path":"[^"]*librocksdb-sys[^"]*"' | head -1 | cut -d'"' -f4)
[ -n "$manifest" ] || { say "cargo does not say where librocksdb-sys is"; exit 1; }
crate=$(dirname "$manifest")

work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "compiling librocksdb-sys $version once for this machine, $BATCHES units on $JOBS cores (3 to 4 minutes on 2 idle cores) ..."

# util/build_version.cc is a template; the crate ships the generated file beside it.
mapfile -t sources < <(grep -v '^util/build_version.cc$' "$crate/rocksdb_lib_sources.txt" | sed "s|^|$crate/rocksdb/|")
sources+=("$crate/build_version.cc")

compile() { # unit.cc -> unit.o
  "$CXX" "${FLAGS[@]}" -I"$crate/rocksdb/include" -I"$crate/rocksdb" -I"$crate" -c "$1" -o "${1%.cc}.o" 2>"${1%.cc}.err"
}
# Files that define the same file-local names can't share a unit: such a unit is halved until it compiles.
unit() { # name, source...
  local name=$1; shift
  printf '#include "%s"\n' "$@" >"$work/$name.cc"
  if compile "$work/$name.cc"; then return 0; fi
  if [ $# -eq 1 ]; then
    say "can't compile $1:"
    head -20 "$work/$name.err" >&2
    return 1
  fi
  [ -z "${ROCKSDB_VERBOSE:-}" ] || { say "unit $name of $# files is split:"; grep -m2 error "$work/$name.err" >&2; }
  local half=$(($# / 2))
  unit "${name}a" "${@:1:half}" && unit "${name}b" "${@:half+1}"
}

total=${#sources[@]}
pids=()
failed=0
for ((i = 0; i < BATCHES; i++)); do
  batch=()
  for ((j = i; j < total; j += BATCHES)); do batch+=("${sources[j]}"); done
  if [ "${#pids[@]}" -ge "$JOBS" ]; then
    wait -n || failed=1
    unset 'pids[0]'
    pids=("${pids[@]}")
  fi
  (unit "u$i" "${batch[@]}" && say "unit $((i + 1)) of $BATCHES done") &
  pids+=($!)
done
for _ in "${pids[@]}"; do wait -n || failed=1; done
[ "$failed" = 0 ] || { say "the build failed; fix the error above and run again"; exit 1; }

"$AR" crs "$work/librocksdb.a" "$work"/u*.o
mkdir -p "$out"
mv "$work/librocksdb.a" "$out/librocksdb.a"
say "ready: $out"
printf '%s\n' "$out"
