#!/bin/sh
# How postgres:local starts; as the official image does, as far as a Database needs it.
#
# env: POSTGRES_PASSWORD  needed once, when the data folder is empty; never printed, never in an argument
#      POSTGRES_USER      default postgres
#      POSTGRES_DB        default as the user
#      PGDATA             default /var/lib/postgresql/data
# The data folder is set up without a server: whoever gets an answer gets it from the real one.
set -eu

export PGDATA="${PGDATA:-/var/lib/postgresql/data}"
if [ "${1:-}" != postgres ]; then exec "$@"; fi

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  chown -R postgres "$PGDATA"
  chmod 700 "$PGDATA"
  # By its path: the shell has a smaller one of that name built in.
  exec /usr/bin/setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi

set_up() {
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  [ -n "${POSTGRES_PASSWORD:-}" ] || { echo "POSTGRES_PASSWORD is not set: a new database needs it" >&2; exit 1; }
  password_file=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" >"$password_file"
  initdb --username="$user" --pwfile="$password_file" --auth-host=scram-sha-256 --auth-local=trust \
    --locale=C --encoding=UTF8 >/dev/null
  rm -f "$password_file"
  printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  if [ "$database" != postgres ]; then
    # One process without any socket: nothing to wait for.
    echo "CREATE DATABASE \"$database\";" | postgres --single -j postgres >/dev/null
  fi
}

[ -s "$PGDATA/PG_VERSION" ] || set_up
shift
exec postgres -c listen_addresses='*' "$@"
