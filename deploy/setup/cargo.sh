#!/usr/bin/env bash
# cargo, with the RocksDB library that rocksdb.sh has built for this machine.
#
# In one target folder use it (or `make`) always or never: cargo builds librocksdb-sys anew when the variable comes or goes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${ROCKSDB_LIB_DIR:-}" ]; then
  rc=0
  dir=$("$here/rocksdb.sh") || rc=$?
  case $rc in
    0) export ROCKSDB_LIB_DIR=$dir ;;
    3) exec cargo "$@" ;;
    *) exit $rc ;;
  esac
fi
export ROCKSDB_STATIC=1
# A release says from which source it was built; another build would be made anew after each commit.
case " $* " in
  *" --release "*) export CARA_COMMIT=${CARA_COMMIT:-$(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null || true)} ;;
esac
exec cargo "$@"
