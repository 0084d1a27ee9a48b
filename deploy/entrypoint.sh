#!/bin/sh
# What a container of the image runs: its command as given, or, with CARA_BOOTSTRAP set, a server that finds its own way
# into a cluster: the one named `init` makes it, the others wait for it and join. Only deploy/compose.yaml uses that.
#
# env: CARA_BOOTSTRAP   `init` or `join`; empty = just run the command
#      CARA_NAME        name of this server, also the host name under which the others reach it
#      CARA_FIRST       join: host:port of the first server
#      CARA_SHARED      folder that all servers see; holds the first root token, so mount it nowhere else
set -eu

[ -n "${CARA_BOOTSTRAP:-}" ] || exec "$@"

data=/var/lib/cara/server
address=$CARA_NAME:7443
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$2" | head -n 1; }

if [ ! -e "$data/.bootstrapped" ]; then
  case $CARA_BOOTSTRAP in
    init)
      umask 077
      cara-server init --data-dir "$data" --name "$CARA_NAME" --advertise "$address" \
        --output json >"$CARA_SHARED/init.json.part"
      mv "$CARA_SHARED/init.json.part" "$CARA_SHARED/init.json"
      ;;
    join)
      until [ -s "$CARA_SHARED/init.json" ]; do echo "waiting for the first server"; sleep 1; done
      export CARA_SERVERS="$CARA_FIRST"
      CARA_TOKEN=$(field token "$CARA_SHARED/init.json")
      CARA_CA_FINGERPRINT=$(field ca_fingerprint "$CARA_SHARED/init.json")
      export CARA_TOKEN CARA_CA_FINGERPRINT
      until caractrl servers join-token -o json >/tmp/join.json 2>/tmp/join.err; do
        echo "waiting for the first server: $(tail -n 1 /tmp/join.err)"
        sleep 1
      done
      cara-server join --data-dir "$data" --name "$CARA_NAME" --advertise "$address" \
        --token "$(field token /tmp/join.json)"
      rm -f /tmp/join.json
      unset CARA_SERVERS CARA_TOKEN CARA_CA_FINGERPRINT
      ;;
    *) echo "CARA_BOOTSTRAP is \"$CARA_BOOTSTRAP\": use init or join" >&2; exit 2 ;;
  esac
  touch "$data/.bootstrapped"
fi
exec cara-server run --data-dir "$data"
