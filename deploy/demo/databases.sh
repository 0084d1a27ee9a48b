#!/usr/bin/env bash
# Real workloads move between real nodes while servers and agents are killed under them. A web server that is asked all the
# time: no request fails. Databases that are written to: every row that was acknowledged is there afterwards, exactly once,
# and one copy runs.
#
# usage: databases.sh                (through `make test-databases`, and as a part of `make test`)
# env:   CARA_BIN      folder with cara-server, cara-agent and caractrl   (default target/debug)
#        CARA_KEEP=1   keep the data folder and the logs
# exit:  0 also where it can't run (no root, no engine, no packages); with CARA_REQUIRE_DOCKER=1 that is a failure
#
# Two nodes with a network and a Docker engine each (machines.sh), three servers, and a client that is on neither node.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
. deploy/demo/lib.sh
. deploy/demo/cluster.sh
. deploy/demo/machines.sh
. deploy/demo/rows.sh
. deploy/demo/requests.sh

BIN=$(realpath "${CARA_BIN:-target/debug}")
SERVERS=(s1 s2 s3)
AGENTS=(n1 n2)
IMAGES=(postgres:local redis:local caravanserai/busybox:local)

# Deadlines in seconds.
START_S=90
MOVE_S=90
PHASE_S=60
OFFLINE_S=40
# Rows of the table that changes all the time beside the one that is counted: enough that its last changes take seconds to
# copy, so that a kill finds the phase that it is meant for.
BALLAST_ROWS=200000

main() {
  need_programs test-databases
  check_needs
  begin_run databases
  # Agents are missed soon, so that a lost one is lost within the test.
  RUN_FLAGS=(--agent-heartbeat-s 2)

  title "three servers, two nodes with an engine each"
  step "a network" make_lan
  step "s1 makes the cluster" init_first
  step "s2 joins with a token" join_server s2
  step "s3 joins with a token" join_server s3
  step "all three vote" all_vote
  for name in "${AGENTS[@]}"; do
    step "$name: network and engine" make_machine "$name" "${name#n}"
    step "$name: images" load_images "$name" "${IMAGES[@]}"
    step "$name: agent" enrol_machine "$name"
  done
  title "a web server moves while it is asked all the time"
  step "a web server on n1" apply_web n1
  step "a client asks, and asks the cluster where" start_asking
  step "it moves to n2" move_unnoticed n2 true
  step "back to n1, SIGKILL to the leader in verify" move_unnoticed n1 in_phase verify kill_leader
  step "the dead server returns" restart_server
  step "the client stops" stop_asking
  title "PostgreSQL moves while it is written to"
  step "a database on n1" apply_database orders postgres n1
  step "a client writes rows, another one changes a table" start_writing
  step "it moves to n2" move_database orders n2
  step "every acknowledged row is there, once" rows_are_there n2
  step "back to n1, SIGKILL to the leader in copy_volumes" move_database orders n1 in_phase copy_volumes kill_leader
  step "every acknowledged row is there, once" rows_are_there n1
  step "the dead server returns" restart_server
  step "to n2, SIGKILL to the target's agent in place" move_database orders n2 in_phase place kill_agent n2
  step "every acknowledged row is there, once" rows_are_there n2
  step "to n1, SIGKILL to the source's agent in stop_source" move_database orders n1 in_phase stop_source kill_agent n2
  step "every acknowledged row is there, once" rows_are_there n1
  step "the clients stop" stop_writing
  title "Redis moves"
  step "a database on n1" apply_database cache redis n1
  step "2000 keys" set_keys
  step "it moves to n2" move_database cache n2
  step "every key is there" keys_are_there
  step "the agent of n2 is not root any more" demote_agent n2
  step "back to n1, read through the engine" move_database cache n1
  step "every key is there" keys_are_there
  step "to n2, filled through the engine" move_database cache n2
  step "every key is there, also when it starts anew" keys_are_there_after_restart
  step "the agent of n2 is root again" promote_agent n2
  title "a node is lost"
  step "n1 falls silent; its containers go on" lose n1
  step "nodes lost n1 --confirm" give_up n1
  step "the database begins anew on n2" begins_anew
  step "n1 returns: its old copy stops, its volume is kept" returns n1
  title "the end"
  step "delete both" delete_both
  echo "databases: ok"
}

check_needs() {
  local missing= tool
  [ "$(id -u)" = 0 ] || missing="it makes networks and starts engines: run it as root"
  [ -n "$missing" ] || deploy/setup/docker.sh || missing="no Docker engine (see above)"
  for tool in ip nsenter curl; do
    [ -n "$missing" ] || command -v $tool >/dev/null || missing="it needs $tool"
  done
  [ -n "$missing" ] || deploy/setup/database-images.sh >/dev/null || missing="no images (see above)"
  [ -n "$missing" ] || deploy/setup/busybox-image.sh >/dev/null || missing="no image (see above)"
  [ -n "$missing" ] || return 0
  [ "${CARA_REQUIRE_DOCKER:-0}" != 1 ] || die "$missing"
  note "SKIPPED: databases.sh: $missing"
  exit 0
}

# === databases

apply_database() { # name engine node
  local other
  # Not bound to that node for ever: only the others take nothing just now.
  for other in "${AGENTS[@]}"; do [ "$other" = "$3" ] || ctl nodes cordon "$other" >>"$DIR/ctl.log" || return; done
  ctl apply -f - >>"$DIR/ctl.log" <<YAML || return
apiVersion: caravanserai/v1
kind: Database
metadata: { name: $1 }
spec: { engine: $2, version: local }
YAML
  for other in "${AGENTS[@]}"; do [ "$other" = "$3" ] || ctl nodes uncordon "$other" >>"$DIR/ctl.log" || return; done
  within $START_S runs_on "$1" "$3"
}

database() { ctl get database "$1" -o json; }
runs_on() { # name node
  local json
  json=$(database "$1")
  grep -q '"phase": *"Running"' <<<"$json" && [ "$(json_field nodeName <<<"$json")" = "$2" ]
}

# Sets HOST_NOW, PORT_NOW and PASSWORD_NOW: where the database is now, as the cluster says.
ask_where() { # name
  local url
  url=$(ask_servers "databases/$1/connection" url)
  [[ $url =~ ^[a-z]+://[a-z]*:([0-9a-f]+)@([0-9.]+):([0-9]+)/ ]] || return
  PASSWORD_NOW=${BASH_REMATCH[1]} HOST_NOW=${BASH_REMATCH[2]} PORT_NOW=${BASH_REMATCH[3]}
}

# === moves

# Moves it; what is given is done meanwhile.
move_database() { # name node meanwhile...
  local name=$1 node=$2 mover json
  shift 2
  "$BIN/caractrl" nodes move database "$name" --to "$node" --yes >"$DIR/move.log" 2>&1 </dev/null &
  mover=$!
  "$@" || { why "${WHY:-$*} ($(tail -n 1 "$DIR/move.log"))"; return 1; }
  # caractrl itself goes on through a change of leader.
  wait $mover || { why "$(tail -n 1 "$DIR/move.log")"; return 1; }
  within $START_S runs_on "$name" "$node" || return
  one_copy_runs "$name" "$node" || return
  detail "$(grep -o 'downtime.*\|from .* to .*' "$DIR/move.log" | tail -n 1)${KILLED:+; $KILLED}"
  KILLED=
}

# Does something as soon as the running move is in that phase, and says so when it was in another one by then.
in_phase() { # phase action...
  local phase=$1 was
  shift
  within $PHASE_S phase_is_reached "$phase" || return
  [ "$PHASE" = "$phase" ] || { why "$phase was over before it was seen, it is $PHASE"; return 1; }
  KILLED_AT=$(now_ms)
  "$@" || return
  was=$(running_phase)
  KILLED="$KILLED in $phase, then $was"
}

running_phase() { ctl nodes moves --status running -o json | json_field phase; }
# True once the running move is in that phase or behind it; sets PHASE.
phase_is_reached() { # phase
  PHASE=$(running_phase)
  case " stop_source copy_volumes place verify stop_old finalize done rollback " in
    *" $1 "*"${PHASE:-none} "*) ;;
    *) [ "$PHASE" = "$1" ] ;;
  esac
}

kill_leader() {
  LEADER=$(leader)
  kill_process "${PID[$LEADER]}" || return
  KILLED="killed $LEADER"
}

restart_server() {
  start_server "$LEADER"
  within $READY_S voters_alive 3
}

kill_agent() { # name
  kill_process "${PID[$1]}" || return
  KILLED="killed the agent of $1"
  start_agent "$1"
}

copies() { # name node; ids of containers that run there
  engine_of "$2" ps -q --filter "label=cara.cluster=$CLUSTER" --filter "label=cara.workload=$1"
}

# The other one is removed once the move is over.
one_copy_runs() { # name node
  local node
  for node in "${AGENTS[@]}"; do
    if [ "$node" = "$2" ]; then
      [ "$(copies "$1" "$node" | wc -l)" = 1 ] || { why "$node runs $(copies "$1" "$node" | wc -l) copies"; return 1; }
    else
      [ -z "$(copies "$1" "$node")" ] || { why "a copy still runs on $node"; return 1; }
    fi
  done
}

# === a lost node

lose() { # name
  lose_machine "$1" || return
  within $OFFLINE_S node_is_away "$1"
}

node_is_away() { ctl get node "$1" -o json | grep -q '"state": *"NotReady"'; }
give_up() { ctl nodes lost "$1" --confirm >>"$DIR/ctl.log"; }

begins_anew() {
  within $START_S runs_on orders n2 || return
  within $READY_S is_empty || return
  one_copy_runs_on_what_is_left
}

is_empty() {
  ask_where orders || return
  [ "$HOST_NOW" = "$(machine_address n2)" ] || return
  [ "$(psql_once orders -c "SELECT to_regclass('rows') IS NULL")" = t ]
}

one_copy_runs_on_what_is_left() { [ "$(copies orders n2 | wc -l)" = 1 ]; }

returns() { # name
  start_engine "$1" || return
  # Otherwise there would be nothing for the agent to stop.
  [ "$(copies orders "$1" | wc -l)" = 1 ] || { why "the old copy did not run any more"; return 1; }
  start_agent "$1"
  within $READY_S node_is_ready "$1" || return
  within $READY_S no_copy orders "$1" || return
  runs_on orders n2 || { why "the new copy on n2 does not run"; return 1; }
  within $READY_S keeps_volume "$1" || return
  detail "$(engine_of "$1" volume ls -q --filter "label=cara.workload=orders" | wc -l) volumes are there, nothing runs"
}

no_copy() { [ -z "$(copies "$1" "$2")" ]; }
keeps_volume() { ctl nodes volumes "$1" -o json | json_object workload orders | grep -q '"state": *"quarantined"'; }

# === the end

delete_both() {
  ctl delete database orders >>"$DIR/ctl.log" || return
  ctl delete database cache >>"$DIR/ctl.log" || return
  within $READY_S nothing_runs
}

nothing_runs() {
  local node
  for node in "${AGENTS[@]}"; do [ -z "$(engine_of "$node" ps -q)" ] || return; done
}

clean_up() {
  local status=$? name
  trap - EXIT INT TERM
  set +u
  rm -f "$DIR/writing" "$DIR/asking"
  docker rm -f "$LAN-client" >/dev/null 2>&1
  for name in "${SERVERS[@]}"; do [ -z "${PID[$name]}" ] || kill -KILL "${PID[$name]}" 2>/dev/null; done
  remove_machines
  if [ -n "${CARA_KEEP:-}" ]; then
    note "kept: $DIR"
  elif [ $status != 0 ] && [ $status != 130 ] && [ $status != 143 ]; then
    rm -rf "$DIR"/*/ # The databases; the logs stay.
    note "logs: $DIR"
  else
    rm -rf "$DIR"
  fi
  exit $status
}

main
