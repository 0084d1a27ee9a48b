#!/usr/bin/env bash
# Makes sure that there is etcd, which `cara-bench kv --vs etcd` measures beside us. Nothing else needs it.
#
# exit: 0 there is one; 1 there is none, and the reason is on stderr
# Does nothing when there is one. The package also starts a service of its own, which would share disk and cores with what is
# measured: that one is stopped.
set -euo pipefail

say() { printf 'etcd: %s\n' "$*" >&2; }

if command -v etcd >/dev/null; then exit 0; fi
here=$(cd "$(dirname "$0")" && pwd)
"$here/apt.sh" etcd "the key-value store that cara-bench compares us with" etcd-server
command -v etcd >/dev/null || { say "apt-get has installed etcd-server, but no etcd is in PATH: look at dpkg -L etcd-server"; exit 1; }
if [ -d /run/systemd/system ]; then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  "${sudo[@]}" systemctl disable --now --quiet etcd || say "its service could not be stopped; stop it before you measure"
fi
say "$(etcd --version | head -1)"
