# Helpers of demo.sh and its neighbours: progress lines, deadlines, JSON without jq, HTTP without curl. Sourced, not run.

now_ms() { local t=$EPOCHREALTIME; echo $((${t/./} / 1000)); }
title() { printf '\n%s\n' "$*"; }
note() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; exit 1; }

# What a step found out, and why it failed.
detail() { DETAIL=$*; }
why() { WHY=$*; }

# Runs a function, prints one line with the time it took; ends the demo when it fails.
step() { # text function argument...
  local text=$1 from
  shift
  DETAIL='' WHY=''
  from=$(now_ms)
  if "$@"; then
    printf '  ok    %-44s %6d ms  %s\n' "$text" $(($(now_ms) - from)) "$DETAIL"
  else
    printf '  FAIL  %-44s %6d ms  %s\n' "$text" $(($(now_ms) - from)) "${WHY:-see the logs}" >&2
    [ ! -s "$DIR/ctl.log" ] || { echo "  the last words of caractrl:"; tail -n 3 "$DIR/ctl.log"; } >&2
    exit 1
  fi
}

# Repeats a command until it succeeds or the deadline has passed.
within() { # seconds command...
  local until=$(($(now_ms) + $1 * 1000)) seconds=$1
  shift
  until "$@"; do
    [ "$(now_ms)" -lt $until ] || { why "not within $seconds s: $*"; return 1; }
    sleep 0.05
  done
}

# === JSON. Enough for flat questions to our own answers; names are those of proto/src/rest.

flat() { tr -d '\n'; }
# The first string (or number) of that name.
json_field() { flat | grep -o "\"$1\": *\"[^\"]*\"" | sed -n 1p | sed 's/^"[^"]*": *"//; s/"$//'; }
json_number() { flat | grep -o "\"$1\": *[0-9]*" | sed -n 1p | sed 's/^.*: *//'; }
# The innermost object whose field has that value, with the objects in it, which have none in turn.
json_object() { flat | sed 's/^{//' | grep -oE '\{[^{}]*(\{[^{}]*\}[^{}]*)*\}' | grep "\"$1\": *\"$2\"" | sed -n 1p; }
# What stands in `containers`.
containers() { flat | grep -o '"containers": *\[.*'; }

# === ports and HTTP

port_is_free() { ! { : 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null; }

# Below the kernel's own range for outgoing connections, so that nothing takes the port before we do.
free_port() {
  local port
  for _ in $(seq 100); do
    port=$((20000 + RANDOM % 12000))
    if port_is_free $port; then echo $port; return; fi
  done
  return 1
}

http_get() { # port
  { printf 'GET / HTTP/1.0\r\nHost: hello\r\n\r\n' >&3 && timeout 2 cat <&3; } 3<>"/dev/tcp/127.0.0.1/$1"
} 2>/dev/null
http_ok() { [[ $(http_get "$1") == HTTP/1.?" 200 "* ]]; }
http_body() { http_get "$1" | tail -n 1; }

# Asks the container in the background until stop_probe, and counts.
start_probe() {
  : >"$DIR/probe.run"
  (
    trap '' PIPE INT
    ok=0 failed=0
    while [ -e "$DIR/probe.run" ]; do
      if http_ok "$PORT"; then ok=$((ok + 1)); else failed=$((failed + 1)); fi
      sleep 0.02
    done
    echo "$ok $failed" >"$DIR/probe.part" && mv "$DIR/probe.part" "$DIR/probe.done"
  ) &
  PROBE=$!
}

stop_probe() {
  [ -n "${PROBE:-}" ] || return 0
  rm -f "$DIR/probe.run"
  wait "$PROBE" 2>/dev/null
  PROBE=''
  read -r PROBES_OK PROBES_FAILED <"$DIR/probe.done"
}

docker_answers() { command -v docker >/dev/null && timeout 5 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
