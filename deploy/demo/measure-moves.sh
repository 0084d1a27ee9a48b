#!/usr/bin/env bash
# What a move costs beside the tools that an operator would use by hand: the same volumes, the same machine, the same run, so
# that only ratios are told. Not a test: it takes minutes and says nothing about right or wrong.
#
# usage: measure-moves.sh [files] [gigabyte] [delta]      all without arguments
# env:   CARA_BIN    folder with the binaries (default target/release)
#        CARA_FILES  small files (default 100000), CARA_MIB size of the large one (default 1024)
#        CARA_KEEP=1 keep the data folder and the logs
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
. deploy/demo/lib.sh
. deploy/demo/cluster.sh
. deploy/demo/machines.sh

BIN=$(realpath "${CARA_BIN:-target/release}")
SERVERS=(s1)
AGENTS=(n1 n2)
FILES=${CARA_FILES:-100000}
MIB=${CARA_MIB:-1024}
# Seconds.
FILL_S=300
MOVE_S=600

main() {
  [ "$(id -u)" = 0 ] || die "it makes networks and starts engines: run it as root"
  [ $# -gt 0 ] || set -- files gigabyte delta
  deploy/setup/docker.sh || die "no Docker engine (see above)"
  deploy/setup/busybox-image.sh >/dev/null || die "no image (see above)"
  begin_run measure
  make_lan && init_first || die "no cluster: look into $DIR"
  for name in "${AGENTS[@]}"; do
    make_machine "$name" "${name#n}" && load_images "$name" caravanserai/busybox:local && enrol_machine "$name" ||
      die "no node $name: look into $DIR"
  done
  local what
  for what in "$@"; do "measure_$what" || die "$what: ${WHY:-see $DIR}"; done
}

# === many small files

measure_files() {
  title "$FILES files of 1 KiB"
  project files "mkdir -p /data/f; head -c 700 /dev/urandom | base64 >/tmp/k;
    awk -v files=$FILES 'BEGIN { while ((getline line <\"/tmp/k\") > 0) text = text line;
      for (i = 1; i <= files; i++) { file = \"/data/f/\" i; print i, text >file; close(file) } }';" || return
  local tar move
  tar=$(by_hand files)
  note "docker stop; tar | tar; sync; docker start: $tar ms of downtime"
  move_it files || return
  move=$(downtime)
  note "a move: $move ms of downtime, $(ratio "$move" "$tar") of that by hand"
}

# === one large file

measure_gigabyte() {
  title "$MIB MiB in one file"
  project large "dd if=/dev/urandom of=/data/large bs=1M count=$MIB 2>/dev/null;" || return
  local node tar move copied volume disk
  node=$(place large)
  volume=$(volume_of large "$node")
  drop_caches
  disk=$(timed dd if="$volume/large" of="$DIR/dd" bs=1M conv=fsync)
  rm -f "$DIR/dd"
  drop_caches
  tar=$(by_hand large)
  drop_caches
  move_it large || return
  move=$(downtime)
  copied=$(first_round)
  note "downtime: move $move ms, by hand $tar ms: $(ratio "$move" "$tar")"
  note "copy: first round $copied ms; tar | tar takes $(ratio "$tar" "$copied") of that, dd with fsync $(ratio "$disk" "$copied")"
}

# === what the next round sends

measure_delta() {
  title "1 % of $MIB MiB in one file changed after the first round"
  project delta "dd if=/dev/urandom of=/data/large bs=1M count=$MIB 2>/dev/null;" || return
  local way
  for way in piece blocks; do
    next_round delta "change_$way" || return
    note "in ${WAYS[$way]}: the next round sends $SENT bytes, $(ratio "$((SENT * 100))" "$((MIB * 1024 * 1024))") % of the volume"
  done
}

declare -A WAYS=([piece]="one piece" [blocks]="random blocks of 4 KiB")
# Of 4 KiB: one in a hundred.
changed_blocks() { echo $((MIB * 256 / 100)); }
change_piece() { dd if=/dev/urandom of="$1" bs=4k count="$(changed_blocks)" seek=$((MIB * 256 / 3)) conv=notrunc status=none; }
change_blocks() {
  local block
  shuf -i 0-$((MIB * 256 - 1)) -n "$(changed_blocks)" | while read -r block; do
    dd if=/dev/urandom of="$1" bs=4k count=1 seek="$block" conv=notrunc status=none || return
  done
}

# Moves a workload and changes its file between the first round and the second; SENT is what the second one had to send.
next_round() { # name change
  local node file since mover status
  node=$(place "$1")
  file=$(volume_of "$1" "$node")/large
  since=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
  move_it "$1" &
  mover=$!
  within $READY_S has_said "$since" 1 "sending a volume" || return
  # Frozen, the leader doesn't begin the second round before the change is made.
  kill -STOP "${PID[s1]}"
  within $MOVE_S has_said "$since" 1 "round of a transfer finished" && "$2" "$file" && sync -f "$file"
  status=$?
  kill -CONT "${PID[s1]}"
  [ $status = 0 ] && wait $mover || { why "the move: $(tail -n 1 "$DIR/move.log")"; return 1; }
  SENT=$(said "$since" 2 "round of a transfer finished" | grep -o 'sent=[0-9]*' | cut -d= -f2)
  [ -n "$SENT" ]
}

# The agents' lines about a round since that time.
said() { # since round words
  grep -h "$3" "$DIR"/n?.log | grep -E "round=$2( |$)" | awk -v since="$1" '$1 > since'
}
has_said() { [ -n "$(said "$@")" ]; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
timed() { local from; from=$(now_ms); "$@" >/dev/null 2>&1; echo $(($(now_ms) - from)); }
drop_caches() { sync; echo 3 >/proc/sys/vm/drop_caches; }

# === workloads

project() { # name command
  ctl apply -f - >>"$DIR/ctl.log" <<YAML || return
apiVersion: caravanserai/v1
kind: Project
metadata: { name: $1 }
spec:
  services:
    - name: main
      image: caravanserai/busybox:local
      command: [sh, -c]
      args:
        - |
          trap exit TERM
          [ -e /data/filled ] || { $(tr '\n' ' ' <<<"$2") sync; touch /data/filled; }
          while true; do usleep 20000; done
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, type: Managed }]
YAML
  within $READY_S runs "$1" && within $FILL_S filled "$1"
}

runs() { ctl get project "$1" -o json | grep -q '"phase": *"Running"'; }
place() { ctl get project "$1" -o json | json_field nodeName; }
container() { engine_of "$2" ps -q --filter "label=cara.workload=$1"; }
volume_of() { engine_of "$2" inspect --format '{{(index .Mounts 0).Source}}' "$(container "$1" "$2")"; }
filled() {
  local node
  node=$(place "$1")
  [ -e "$(volume_of "$1" "$node")/filled" ]
}

# What one does without us: from the order to stop to the start of the container on the other node.
by_hand() { # name
  local node other volume from
  node=$(place "$1")
  for other in "${AGENTS[@]}"; do [ "$other" = "$node" ] || break; done
  volume=$(volume_of "$1" "$node")
  engine_of "$other" volume create by-hand >/dev/null
  # A twin beside it, so that the agent doesn't start again what we stop.
  engine_of "$node" run -d --name twin -v "$volume:/data" caravanserai/busybox:local sh -c 'trap exit TERM; while true; do usleep 20000; done' >/dev/null
  engine_of "$other" create --name twin -v by-hand:/data caravanserai/busybox:local sh -c 'trap exit TERM; while true; do usleep 20000; done' >/dev/null
  from=$(now_ms)
  engine_of "$node" stop twin >/dev/null
  tar -C "$volume" -c . | tar -C "$DIR/$other/docker/volumes/by-hand/_data" -x
  sync -f "$DIR/$other/docker/volumes/by-hand/_data"
  engine_of "$other" start twin >/dev/null
  echo $(($(now_ms) - from))
  engine_of "$node" rm -f twin >/dev/null
  engine_of "$other" rm -f -v twin >/dev/null
  engine_of "$other" volume rm by-hand >/dev/null
}

move_it() { # name
  timeout $MOVE_S "$BIN/caractrl" nodes move project "$1" --yes >"$DIR/move.log" 2>&1 </dev/null ||
    { why "$(tail -n 1 "$DIR/move.log")"; return 1; }
}

last_move() { ctl nodes moves -o json; }
downtime() { last_move | json_number downtime_ms; }
# Milliseconds from the first word of the first round to its last, as the agents' logs tell.
first_round() {
  local from to
  from=$(grep -h "sending a volume" "$DIR"/n?.log | grep "round=1" | sort | tail -n 1 | cut -d' ' -f1)
  to=$(grep -h "round of a transfer finished" "$DIR"/n?.log | grep "round=1" | sort | tail -n 1 | cut -d' ' -f1)
  echo $(($(date -d "$to" +%s%3N) - $(date -d "$from" +%s%3N)))
}

clean_up() {
  local status=$? name
  trap - EXIT INT TERM
  set +u
  for name in "${SERVERS[@]}"; do [ -z "${PID[$name]}" ] || kill -KILL "${PID[$name]}" 2>/dev/null; done
  remove_machines
  if [ -n "${CARA_KEEP:-}" ]; then note "kept: $DIR"; else rm -rf "$DIR"; fi
  exit $status
}

main "$@"
