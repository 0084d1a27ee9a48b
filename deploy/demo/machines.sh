# Nodes that are as separate as they can be on one machine: each has a network of its own, with its own address and ports,
# a Docker engine of its own in there, and an agent beside it. Sourced after cluster.sh, not run. Needs root.
#
#   servers, clients          n1                              n2
#   SUBNET.1 ── bridge ──┬── SUBNET.11  dockerd, agent ──┬── SUBNET.12  dockerd, agent
#
# Everything that is made here carries the run's own names and is ended by the numbers of its processes: neither an engine
# that runs on this machine already nor anybody's containers are touched.

LAN=cara$((BASHPID % 100000))
# Taken by nobody: not one of Docker's own ranges, and another one for each run.
SUBNET=10.231.$((BASHPID % 250 + 1))
ENGINE_S=40

KILLED=
# Somebody who may talk to an engine and may read none of its folders.
NOBODY=65534
declare -A MACHINE_NUMBER ENGINE_PID AGENT_FLAGS AGENT_AS

make_lan() {
  ip link add "$LAN" type bridge || return
  ip address add "$SUBNET.1/24" dev "$LAN" || return
  ip link set "$LAN" up || return
  # Where bridged packets pass the packet filter, the engine of this machine has closed it.
  ! command -v iptables >/dev/null || iptables -w -I FORWARD -i "$LAN" -o "$LAN" -j ACCEPT 2>/dev/null
  HOST=$SUBNET.1
}

make_machine() { # name number
  MACHINE_NUMBER[$1]=$2
  local inside=/run/netns/$LAN-$1
  mkdir -p "$DIR/$1"
  ip netns add "$LAN-$1" || return
  ip link add "$LAN-$2" type veth peer name eth0 netns "$LAN-$1" || return
  ip link set "$LAN-$2" master "$LAN" up || return
  nsenter --net="$inside" sh -c "ip link set lo up && ip address add $(machine_address "$1")/24 dev eth0 &&
    ip link set eth0 up && ip route add default via $SUBNET.1" || return
  start_engine "$1"
}

machine_address() { echo "$SUBNET.$((10 + MACHINE_NUMBER[$1]))"; }
engine_of() { local name=$1; shift; docker --host "unix://$DIR/$name/docker.sock" "$@"; }

# Containers survive the engine, as they survive one that crashes on a node.
start_engine() { # name
  local folder=$DIR/$1
  nsenter --net="/run/netns/$LAN-$1" dockerd --host "unix://$folder/docker.sock" --data-root "$folder/docker" --exec-root "$folder/run" \
    --pidfile "$folder/docker.pid" --live-restore --containerd-namespace "$LAN-$1" \
    --containerd-plugins-namespace "$LAN-$1-plugins" >>"$folder.engine.log" 2>&1 </dev/null &
  ENGINE_PID[$1]=$!
  disown
  within $ENGINE_S engine_answers "$1"
}

engine_answers() { engine_of "$1" version >/dev/null 2>&1; }

load_images() { # machine image...
  local name=$1
  shift
  docker save "$@" | engine_of "$name" load >/dev/null
}

enrol_machine() { # name
  local token
  token=$(ctl nodes join-token -o json | json_field token) || return
  AGENT_FLAGS[$1]="--token $token"
  start_agent "$1"
  AGENT_FLAGS[$1]=
  within $READY_S node_is_ready "$1"
}

start_agent() { # name
  # shellcheck disable=SC2086 # Several words, or none.
  nsenter --net="/run/netns/$LAN-$1" ${AGENT_AS[$1]:-"$BIN/cara-agent"} --data-dir "$DIR/$1/agent" --name "$1" --advertise "$(machine_address "$1")" --backoff-max 1 \
    --runtime docker --docker-host "unix://$DIR/$1/docker.sock" ${AGENT_FLAGS[$1]} >>"$DIR/$1.log" 2>&1 </dev/null &
  PID[$1]=$!
  disown
}

# From here on the agent is not root: volumes go through the engine's archive calls, as it can't read the engine's folders.
demote_agent() { # name
  kill_process "${PID[$1]}" || return
  # A program of its own: where ours lie, only root may be able to look.
  install -m 755 "$BIN/cara-agent" "$DIR/$1/cara-agent" || return
  chown -R $NOBODY:$NOBODY "$DIR/$1/agent" && chmod 711 "$DIR" "$DIR/$1" && chmod 666 "$DIR/$1/docker.sock" || return
  AGENT_AS[$1]="setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups $DIR/$1/cara-agent"
  start_agent "$1"
  within $READY_S node_is_ready "$1"
}

promote_agent() { # name
  kill_process "${PID[$1]}" || return
  chown -R 0:0 "$DIR/$1/agent" || return
  AGENT_AS[$1]=
  start_agent "$1"
  within $READY_S node_is_ready "$1"
}

# SIGKILL, and the process is gone when this returns.
kill_process() { # pid
  kill -KILL "$1" || return
  while [ -e "/proc/$1" ]; do sleep 0.01; done
}

# A machine that nobody hears of any more: agent and engine are gone; what runs in its containers knows nothing of that.
lose_machine() { # name
  kill_process "${PID[$1]}" || return
  kill_process "${ENGINE_PID[$1]}" || return
  local containerd
  containerd=$(cat "$DIR/$1/run/containerd/containerd.pid" 2>/dev/null) && kill_process "$containerd"
}

remove_machines() {
  local name id pid
  for name in "${!MACHINE_NUMBER[@]}"; do
    for pid in "${PID[$name]}" "${ENGINE_PID[$name]}" "$(cat "$DIR/$name/run/containerd/containerd.pid" 2>/dev/null)"; do
      [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
    done
    for id in "$DIR/$name"/docker/containers/*/; do
      [ -d "$id" ] || continue
      id=$(basename "$id")
      find /sys/fs/cgroup -path "*$id*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | xargs -r kill -KILL 2>/dev/null
    done
    # What is left in there: those that watched over the containers.
    ip netns pids "$LAN-$name" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
    ip netns delete "$LAN-$name" 2>/dev/null
    ip link delete "$LAN-${MACHINE_NUMBER[$name]}" 2>/dev/null
  done
  ! command -v iptables >/dev/null || iptables -w -D FORWARD -i "$LAN" -o "$LAN" -j ACCEPT 2>/dev/null
  ip link delete "$LAN" 2>/dev/null
  awk -v folder="$DIR/" 'index($2, folder) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null
}
