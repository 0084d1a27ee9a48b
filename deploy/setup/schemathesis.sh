#!/usr/bin/env bash
# Installs schemathesis, which makes requests from the OpenAPI document, into a Python environment of its own, and prints the
# program's path. Versions are pinned in schemathesis.txt.
#
# usage: schemathesis.sh    prints the path on stdout, progress on stderr
# env:   CARA_CACHE         cache root (default: $XDG_CACHE_HOME/caravanserai or ~/.cache/caravanserai)
# exit:  0 the path is on stdout; 3 this machine can't have it, and the reason is on stderr
set -euo pipefail
cd "$(dirname "$0")"

say() { printf 'schemathesis: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 3; }

command -v python3 >/dev/null || give_up "there is no python3: install it (Debian: apt-get install python3-venv)"
key=$( (python3 --version && cat schemathesis.txt) | sha256sum | cut -c1-16)
cache=${CARA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caravanserai}
out=$cache/schemathesis-$key
mkdir -p "$cache"

# One at a time, and what was broken off is begun anew.
exec 9>"$out.lock"
flock 9
if [ ! -e "$out/complete" ]; then
  rm -rf "$out"
  say "installing into $out"
  python3 -m venv "$out" >&2 || give_up "python3 can't make an environment (Debian: apt-get install python3-venv)"
  "$out/bin/pip" install --quiet --disable-pip-version-check --no-deps -r schemathesis.txt >&2 ||
    give_up "pip could not install it (its reason is above): is the network or a mirror of PyPI reachable?"
  touch "$out/complete"
fi
printf '%s\n' "$out/bin/schemathesis"
