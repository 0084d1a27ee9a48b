#!/usr/bin/env bash
# Runs every Rust test of the workspace, those with a real Docker engine included.
#
# Tests that need an engine have `docker_runtime` or `docker_container` in their path. Where none can be had, they are left
# out and listed by name; with CARA_REQUIRE_DOCKER=1 (CI) that is an error.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=deploy/setup/cargo.sh

docker=yes
if deploy/setup/docker.sh; then
  deploy/setup/busybox-image.sh >/dev/null
elif [ "${CARA_REQUIRE_DOCKER:-0}" = 1 ]; then
  echo "test: no Docker engine, and CARA_REQUIRE_DOCKER=1 demands one" >&2
  exit 1
else
  docker=no
fi

# Tests that draw a report have `chromium_` in their names; without a browser they say that they are skipped.
if deploy/setup/chromium.sh >/dev/null; then
  export CARA_REQUIRE_CHROMIUM=1
elif [ "${CARA_REQUIRE_DOCKER:-0}" = 1 ]; then
  echo "test: no Chromium, and a run that demands everything (CARA_REQUIRE_DOCKER=1) needs one" >&2
  exit 1
fi

# End-to-end tests start the real binaries.
"$cargo" build --workspace --bins

if cargo nextest --version >/dev/null 2>&1; then
  if [ "$docker" = yes ]; then
    "$cargo" nextest run --workspace
  else
    "$cargo" nextest run --workspace -E 'not test(/docker_(runtime|container)/)'
    "$cargo" nextest list --workspace -E 'test(/docker_(runtime|container)/)' --message-format oneline 2>/dev/null |
      sed 's/^/SKIPPED (no Docker engine): /'
  fi
elif [ "$docker" = yes ]; then
  # One test at a time per process: the simulator owns the process that it runs in.
  "$cargo" test --workspace --no-fail-fast -- --test-threads=1
else
  "$cargo" test --workspace --no-fail-fast -- --test-threads=1 --skip docker_runtime --skip docker_container
  "$cargo" test --workspace -q -- --list 2>/dev/null | sed -n 's/^\(.*docker_\(runtime\|container\).*\): test$/SKIPPED (no Docker engine): \1/p'
fi
