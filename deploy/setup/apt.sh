#!/usr/bin/env bash
# Installs packages of Debian or Ubuntu for another script of this folder, and says which and why.
#
# usage: apt.sh WHO "WHY" PACKAGE...      WHO stands before each line on stderr
# exit:  0 installed; 1 not, and the reason with the next step is on stderr
set -euo pipefail

who=$1 why=$2
shift 2
say() { printf '%s: %s\n' "$who" "$*" >&2; }

if ! command -v apt-get >/dev/null; then
  say "this is not Debian or Ubuntu: install $* (or their equivalents) and run again"
  exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { say "not root and no sudo: ask for: apt-get install $*"; exit 1; }
  sudo=(sudo)
fi
say "apt-get install $* ($why)"
# Old lists may still do; if not, the next line says so.
"${sudo[@]}" apt-get update -q >&2 || say "the lists of packages could not be renewed"
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2 ||
  { say "apt-get could not install $*: its reason is above"; exit 1; }
