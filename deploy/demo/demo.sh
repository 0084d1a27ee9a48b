#!/usr/bin/env bash
# The main job, for real: three servers, two agents, one container that survives the loss of the leader, and one with data
# that moves from node to node.
#
# usage: demo.sh                     (through `make demo`; `make test` runs it as the last end-to-end test)
# env:   CARA_BIN      folder with cara-server, cara-agent and caractrl   (default target/release)
#        CARA_RUNTIME  docker or memory      (default: docker where an engine answers)
#        CARA_KEEP=1   keep the data folder and the logs
#
# Everything lives in one temporary folder and under one cluster id; both are gone when the script ends, however it ends.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
. deploy/demo/lib.sh
. deploy/demo/cluster.sh

BIN=${CARA_BIN:-target/release}
SERVERS=(s1 s2 s3)
AGENTS=(n1 n2)
HELLO=deploy/examples/hello.yaml
NODE=deploy/examples/node.yaml

PULL_UP_S=60
FAILOVER_S=30

main() {
  need_programs demo
  begin_run demo
  choose_runtime

  title "a cluster of three servers"
  step "s1 makes the cluster" init_first
  step "s2 joins with a token" join_server s2
  step "s3 joins with a token" join_server s3
  step "all three vote" all_vote
  title "two agents"
  step "n1 enrols with a token" enrol n1
  step "n2 enrols with a token" enrol n2
  title "one container"
  step "apply $HELLO" apply_hello
  step "hello runs" hello_runs
  [ "$RUNTIME" = memory ] || step "it serves HTTP" serves
  title "the leader dies"
  step "a write, acknowledged just before" write_before
  step "SIGKILL to the leader" kill_leader
  step "a new write is acknowledged" write_after
  step "the write from before is there" before_is_there
  step "both agents are back, at the new leader" agents_back
  step "the container never stopped" never_stopped
  title "the dead server returns"
  step "the same process is started again" restart_dead
  step "it caught up" caught_up
  title "data moves"
  step "apply a ledger that writes all the time" apply_ledger
  step "it moves to the other node" move_ledger
  step "it moves back, and the leader dies on the way" move_ledger kill_leader_once_it_moves
  step "all that it wrote is there" rows_are_there
  title "the token is lost"
  step "cara-server makes another one on the leader's machine" recover_token
  step "the lost one opens nothing any more" revoke_lost_token
  title "the end"
  step "delete both" delete_both
  echo "demo: ok"
}

# === the cluster

choose_runtime() {
  PORT=18080
  RUNTIME=${CARA_RUNTIME:-}
  if [ -z "$RUNTIME" ]; then
    if docker_answers; then RUNTIME=docker; else RUNTIME=memory; fi
  fi
  if [ "$RUNTIME" = docker ]; then
    IMAGE_STATE=$(deploy/setup/busybox-image.sh) || die "the demo image could not be made (see above)"
    port_is_free $PORT || PORT=$(free_port)
    note "runtime: docker, engine $(docker version --format '{{.Server.Version}}'), image $IMAGE_STATE on this machine"
  else
    note "runtime: memory (no Docker engine answers): containers live in the agents, so there is no HTTP to look at"
  fi
}

enrol() { # name
  local token
  token=$(ctl nodes join-token -o json | json_field token) || return
  "$BIN/cara-agent" --data-dir "$DIR/$1" --name "$1" --advertise 127.0.0.1 --runtime "$RUNTIME" --token "$token" \
    >"$DIR/$1.log" 2>&1 </dev/null &
  PID[$1]=$!
  disown
  within $READY_S node_is_ready "$1"
}

# === the token

recover_token() {
  LOST=$CARA_TOKEN
  CARA_TOKEN=$("$BIN/cara-server" recover-token --data-dir "$DIR/$(leader)" --output json 2>>"$DIR/ctl.log" | json_field token)
  export CARA_TOKEN
  [ -n "$CARA_TOKEN" ] || return
  detail "$(ctl audit --limit 1 --no-headers | cut -f 3,5,6 | tr '\t' ' ')"
}

revoke_lost_token() {
  ctl tokens revoke "root made by init" >>"$DIR/ctl.log" || return
  ! CARA_TOKEN=$LOST ctl nodes list >>"$DIR/ctl.log" 2>&1
}

# === the container

apply_hello() {
  sed "s/host: 18080/host: $PORT/" "$HELLO" | ctl apply -f - >>"$DIR/ctl.log"
}

hello_runs() {
  within $PULL_UP_S hello_is_running || return
  CONTAINER=$(hello_facts)
  detail "on $(hello | json_field nodeName), container $(printf %.12s "${CONTAINER%% *}")"
}

hello_is_running() { hello | grep -q '"phase": *"Running"' && [ "$(hello_facts)" != " " ]; }

# Id and start time, from the cluster's point of view and from the engine's.
hello_facts() {
  local json id
  json=$(hello)
  id=$(containers <<<"$json" | json_field id)
  echo "$id $(containers <<<"$json" | json_field startedAt)"
}

serves() {
  within $READY_S http_ok "$PORT" || return
  ENGINE_FACTS=$(engine_facts)
  detail "http://127.0.0.1:$PORT: \"$(http_body "$PORT")\""
  start_probe
}

engine_facts() { docker inspect --format '{{.Id}} {{.State.StartedAt}} {{.State.Running}} {{.RestartCount}}' "${CONTAINER%% *}"; }

# === the loss

write_before() { rename_node before | ctl apply -f - >>"$DIR/ctl.log"; }

kill_leader() {
  LEADER=$(leader)
  [ -n "$LEADER" ] || return
  KILLED_AT=$(now_ms)
  kill -KILL "${PID[$LEADER]}" || return
  detail "$LEADER, pid ${PID[$LEADER]}"
}

write_after() {
  rename_node after >"$DIR/after.yaml"
  within $FAILOVER_S ctl_quiet apply -f "$DIR/after.yaml" || return
  local took=$(($(now_ms) - KILLED_AT))
  within $FAILOVER_S leads_not "$LEADER" || return
  detail "$took ms after the kill; leader $LEADER -> $(leader)"
}

before_is_there() { ctl get node before -o json >/dev/null; }

agents_back() {
  local name
  for name in "${AGENTS[@]}"; do within $FAILOVER_S session_is_at_leader "$name" || return; done
  detail "$(($(now_ms) - KILLED_AT)) ms after the kill"
}

never_stopped() {
  within $READY_S hello_is_running || return
  [ "$(hello_facts)" = "$CONTAINER" ] || { why "container and start time were \"$CONTAINER\", are \"$(hello_facts)\""; return 1; }
  if [ "$RUNTIME" = docker ]; then
    [ "$(engine_facts)" = "$ENGINE_FACTS" ] || { why "the engine says \"$(engine_facts)\", before \"$ENGINE_FACTS\""; return 1; }
    stop_probe
    [ "$PROBES_FAILED" = 0 ] && [ "$PROBES_OK" -gt 0 ] || { why "$PROBES_FAILED of $((PROBES_OK + PROBES_FAILED)) requests failed"; return 1; }
    detail "same id, same start time; $PROBES_OK HTTP requests meanwhile, 0 failed"
  else
    detail "same id, same start time"
  fi
}

# === the return

restart_dead() {
  BEHIND=$(server_view "$LEADER" | json_number lag)
  start_server "$LEADER"
}

caught_up() {
  within $READY_S follows "$LEADER" || return
  within $READY_S voters_alive 3 || return
  # Ask the returned server itself.
  CARA_SERVERS=${ADDRESS[$LEADER]} ctl get node after -o json >/dev/null || return
  detail "$LEADER follows, was ${BEHIND:-?} entries behind, now $(server_view "$LEADER" | json_number lag)"
}

# === the move

apply_ledger() {
  ctl apply -f - >>"$DIR/ctl.log" <<'YAML'
apiVersion: caravanserai/v1
kind: Project
metadata: { name: ledger }
spec:
  services:
    - name: writer
      image: caravanserai/busybox:local
      command: [sh, -c]
      args:
        - |
          trap exit TERM
          [ -e /data/rows ] || head -c 30000000 /dev/urandom >/data/ballast
          row=$(wc -l </data/rows 2>/dev/null || echo 0)
          while true; do row=$((row + 1)); echo $row >>/data/rows; usleep 5000; done
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, type: Managed }]
YAML
  within $PULL_UP_S ledger_is_running || return
  [ "$RUNTIME" = memory ] || within $READY_S last_row >/dev/null
  detail "on $(ledger | json_field nodeName)"
}

# Moves it; what is given is done meanwhile.
move_ledger() { # meanwhile...
  local from mover
  from=$(ledger | json_field nodeName)
  [ "$RUNTIME" = memory ] || ROW=$(last_row) || return
  "$BIN/caractrl" nodes move project ledger --yes >"$DIR/move.log" 2>&1 </dev/null &
  mover=$!
  "$@" || return
  wait $mover || { why "$(tail -n 1 "$DIR/move.log")"; return 1; }
  within $READY_S ledger_is_running || return
  [ "$(ledger | json_field nodeName)" != "$from" ] || { why "it is still on $from"; return 1; }
  detail "$(grep -o 'from .* to .*' "$DIR/move.log" | sed -n '$p')"
}

kill_leader_once_it_moves() {
  within $READY_S ledger_moves || return
  kill_leader
}

# Every row of before the moves is there, none is missing and none is twice.
rows_are_there() {
  if [ "$RUNTIME" = memory ]; then detail "the runtime in memory keeps no rows to look at"; return; fi
  within $READY_S last_row >/dev/null || return
  docker exec "$(writer)" awk 'NR != $1 { exit 1 }' /data/rows || { why "the rows are not 1, 2, 3, ..."; return 1; }
  [ "$(last_row)" -gt "$ROW" ] || { why "row $ROW was written before the move and is not there"; return 1; }
  detail "$(last_row) rows, $ROW of them from before it moved back"
}

last_row() { docker exec "$(writer)" tail -n 1 /data/rows | grep .; } 2>/dev/null
writer() { ours container ls -q --filter label=cara.service=writer; }
ledger() { ctl get project ledger -o json; }
ledger_is_running() { ledger | grep -q '"phase": *"Running"'; }
ledger_moves() { ctl nodes moves --status running -o json | grep -q '"running"'; }

# === the end of the work

delete_both() {
  ctl delete app hello >>"$DIR/ctl.log" || return
  ctl delete project ledger >>"$DIR/ctl.log" || return
  within $READY_S both_are_gone
}

both_are_gone() {
  ! ctl_quiet get app hello -o json || return
  ! ctl_quiet get project ledger -o json || return
  [ "$RUNTIME" = memory ] || [ -z "$(ours container ls -aq)" ]
}

# === questions to the cluster

hello() { ctl get app hello -o json; }
rename_node() { sed "s/name: rack-1/name: $1/" "$NODE"; }

# === the end

clean_up() {
  local status=$? name
  trap - EXIT INT TERM
  set +u
  stop_probe
  for name in "${AGENTS[@]}" "${SERVERS[@]}"; do [ -z "${PID[$name]}" ] || kill -KILL "${PID[$name]}" 2>/dev/null; done
  if [ "$RUNTIME" = docker ] && [ -n "$CLUSTER" ]; then
    ours container ls -aq | xargs -r docker rm -f >/dev/null
    ours network ls -q | xargs -r docker network rm >/dev/null
    ours volume ls -q | xargs -r docker volume rm -f >/dev/null
    [ "$IMAGE_STATE" != made ] || docker image rm caravanserai/busybox:local >/dev/null 2>&1
  fi
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

# Containers, networks and volumes that carry this cluster's label.
ours() { docker "$@" --filter "label=cara.cluster=$CLUSTER"; }

main
