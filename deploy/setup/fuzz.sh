#!/usr/bin/env bash
# Fuzzes every reader of others' bytes with libFuzzer, guided by coverage, one after the other.
#
# usage: fuzz.sh [SECONDS] [TARGET...]   SECONDS for each target, default 60; TARGETS as in chaos/fuzz/tests/fuzz.rs, default all
# exit:  0 nothing found; 1 an input breaks its property: it lies in chaos/fuzz/tests/__fuzz__/TARGET/crashes, where
#        `cargo test -p cara-fuzz` finds it until it is mended: commit it with the mending
# Inputs that reach new code are kept in target/fuzz/corpus and used by the next run; those worth keeping for all are copied by
# hand to chaos/fuzz/tests/__fuzz__/TARGET/corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The release that fits the bolero of chaos/fuzz.
version=0.13.5
tool=${XDG_CACHE_HOME:-$HOME/.cache}/caravanserai/cargo-bolero-$version
if [ ! -x "$tool/bin/cargo-bolero" ]; then
  echo "fuzz: installing cargo-bolero $version into $tool (a minute or two)" >&2
  cargo install -q --locked --root "$tool" --version "$version" --no-default-features --features libfuzzer cargo-bolero
fi
export PATH=$tool/bin:$PATH
# cargo-bolero replaces the flags of .cargo/config.toml by these and its own.
export RUSTFLAGS="--cfg tokio_unstable"

seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(sed -n 's/^ *\([a-z_]*\) => cara_fuzz.*/\1/p' chaos/fuzz/tests/fuzz.rs)
fi
failed=()
for target in "${targets[@]}"; do
  own=chaos/fuzz/tests/__fuzz__/$target
  mkdir -p "target/fuzz/corpus/$target" "$own/corpus" "$own/crashes"
  echo "fuzz: $target, $seconds s" >&2
  deploy/setup/cargo.sh bolero test "$target" --package cara-fuzz --profile fuzz --sanitizer NONE --engine libfuzzer \
    --corpus-dir "$PWD/target/fuzz/corpus/$target" --crashes-dir "$PWD/$own/crashes" \
    -T "${seconds}s" --engine-args "$PWD/$own/corpus" || failed+=("$target")
  rmdir --ignore-fail-on-non-empty "$own/corpus" "$own/crashes" "$own" 2>/dev/null || true
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz: FAILED: ${failed[*]}" >&2
  exit 1
fi
echo "fuzz: ${#targets[@]} targets, nothing found" >&2
