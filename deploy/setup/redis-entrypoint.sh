#!/bin/sh
# How redis:local starts; as the official image does, as far as a Database needs it: never as root, and its data in /data.
set -eu

if [ "${1:-}" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find /data ! -user redis -exec chown redis {} +
  cd /data
  # By its path: the shell has a smaller one of that name built in.
  exec /usr/bin/setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
exec "$@"
