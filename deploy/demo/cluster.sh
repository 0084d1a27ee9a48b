# A cluster of servers for demo.sh and the tests beside it, and questions to it. Sourced after lib.sh, not run.
#
# Needs: BIN (folder of the binaries), and a function clean_up; begin_run makes DIR, the temporary folder of the run.

# Where the servers listen.
HOST=127.0.0.1
# What every server is started with.
RUN_FLAGS=()
# Deadline in seconds. Generous: it is there to end a broken run, the measured times are printed.
READY_S=30

declare -A ADDRESS PID

need_programs() { # make target that builds them
  local program
  for program in cara-server cara-agent caractrl; do
    [ -x "$BIN/$program" ] || die "no $BIN/$program: run \`make $1\`, or build and set CARA_BIN"
  done
}

# Sets DIR; whatever ends the script, clean_up comes last.
begin_run() { # name
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  DIR=$(mktemp -d "${TMPDIR:-/tmp}/cara-$1.XXXXXX")
}

init_first() {
  ADDRESS[s1]=$HOST:$(free_port)
  "$BIN/cara-server" init --data-dir "$DIR/s1" --name s1 --listen "${ADDRESS[s1]}" --advertise "${ADDRESS[s1]}" \
    --output json >"$DIR/init.json" 2>"$DIR/s1.log" || return
  CARA_TOKEN=$(json_field token <"$DIR/init.json")
  CARA_CA_FINGERPRINT=$(json_field ca_fingerprint <"$DIR/init.json")
  CLUSTER=$(json_field cluster_id <"$DIR/init.json")
  CARA_SERVERS=${ADDRESS[s1]}
  export CARA_TOKEN CARA_CA_FINGERPRINT CARA_SERVERS
  start_server s1
  within $READY_S leads s1 || return
  detail "cluster $CLUSTER at ${ADDRESS[s1]}"
}

join_server() { # name
  local token
  token=$(ctl servers join-token -o json | json_field token) || return
  ADDRESS[$1]=$HOST:$(free_port)
  "$BIN/cara-server" join --data-dir "$DIR/$1" --name "$1" --listen "${ADDRESS[$1]}" --advertise "${ADDRESS[$1]}" \
    --token "$token" >"$DIR/$1.log" 2>&1 || return
  start_server "$1"
  CARA_SERVERS=$CARA_SERVERS,${ADDRESS[$1]}
  within $READY_S is_voter "$1"
}

start_server() { # name
  "$BIN/cara-server" run --data-dir "$DIR/$1" "${RUN_FLAGS[@]}" >>"$DIR/$1.log" 2>&1 </dev/null &
  PID[$1]=$!
  disown
}

all_vote() {
  within $READY_S voters_alive 3 || return
  LEADER=$(leader)
  detail "leader $LEADER, can lose $(ctl servers -o json | json_number canLose)"
}

# === questions to the cluster

# For clients that ask without caractrl.
write_ca() { json_field ca_pem <"$DIR/s1/server.json" | sed 's/\\n/\n/g' >"$DIR/ca.pem"; }
# The field of an answer of the first server that gives one. The token goes through a pipe: arguments can be seen by everyone.
# A second for each: whoever asks while no server leads must be back before what it knows is out of date.
ask_servers() { # path field
  local server found
  for server in ${CARA_SERVERS//,/ }; do
    found=$(curl -sf -m 1 --cacert "$DIR/ca.pem" -H @<(echo "Authorization: Bearer $CARA_TOKEN") \
      "https://$server/api/v1/$1" | json_field "$2")
    [ -z "$found" ] || { echo "$found"; return; }
  done
  return 1
}

ctl() { "$BIN/caractrl" "$@" 2>>"$DIR/ctl.log"; }
ctl_quiet() { ctl "$@" >/dev/null; }
leader() { ctl servers -o json | json_field leader; }
leads() { [ "$(leader)" = "$1" ]; }
leads_not() { local now; now=$(leader); [ -n "$now" ] && [ "$now" != "$1" ]; }
server_view() { ctl servers -o json | json_object name "$1"; }
is_voter() { server_view "$1" | grep -q '"voter": *true'; }
follows() { server_view "$1" | grep -q '"role": *"follower"' && [ "$(server_view "$1" | json_number lag)" = 0 ]; }
voters_alive() { [ "$(ctl servers -o json | json_number votersAlive)" = "$1" ]; }
node_is_ready() { ctl get node "$1" -o json | grep -q '"state": *"Ready"'; }
session_is_at_leader() { [ "$(ctl get node "$1" -o json | json_field server)" = "$(leader)" ]; }
