#!/usr/bin/env bash
# Makes sure that a Docker engine answers.
#
# usage: docker.sh          use the engine that answers; else install Debian's docker.io and start dockerd
#        docker.sh stop     end the dockerd that this script has started (never another one)
# env:   DOCKER_HOST        use this engine; then nothing is installed or started
# exit:  0 an engine answers; 3 none, and the reason is on stderr
set -euo pipefail

PID_FILE=/var/run/caravanserai-dockerd.pid
LOG=/var/log/caravanserai-dockerd.log
START_DEADLINE_S=40   # A cold dockerd answers within 10 s; slow disks get four times that.

say() { printf 'docker: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 3; }
answers() { command -v docker >/dev/null && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)

stop() {
  local pid
  pid=$("${sudo[@]}" cat "$PID_FILE" 2>/dev/null) || return 0
  # The number may have been given to another process since.
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then
    "${sudo[@]}" kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do [ -e "/proc/$pid" ] || break; sleep 0.1; done
    say "dockerd (pid $pid) is stopped"
  fi
  "${sudo[@]}" rm -f "$PID_FILE"
}

# Starts dockerd with the given flags; succeeds once it answers.
start() {
  say "starting: dockerd${*:+ $*}"
  "${sudo[@]}" sh -c "echo '--- dockerd $*' >>$LOG"
  "${sudo[@]}" setsid sh -c 'log=$1; shift; exec dockerd "$@" >>"$log" 2>&1 </dev/null' sh "$LOG" \
    --pidfile "$PID_FILE" --group "$(id -g)" "$@" &
  local job=$! until=$((SECONDS + START_DEADLINE_S))
  while [ $SECONDS -lt $until ]; do
    if answers; then
      disown "$job"
      return 0
    fi
    kill -0 "$job" 2>/dev/null || break
    sleep 0.2
  done
  stop
  return 1
}

if [ "${1:-}" = stop ]; then stop; exit 0; fi

if answers; then exit 0; fi
[ -z "${DOCKER_HOST:-}" ] || give_up "no engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset DOCKER_HOST"
[ "$(uname -s)" = Linux ] || give_up "no engine answers: start Docker"
[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || give_up "no engine answers, and starting one needs root: start Docker, or run as root"

# docker.io: the engine that the agents drive. iptables: it publishes ports. busybox-static: the tests' only image is made from it.
missing=()
for need in dockerd:docker.io docker:docker.io iptables:iptables; do
  PATH=$PATH:/usr/sbin command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  "$here/apt.sh" docker "the engine that runs the containers in the end-to-end tests" "${missing[@]}" ||
    give_up "no engine answers, and none could be installed"
  # Where there is an init system, the package has started the engine by itself.
  for _ in $(seq 100); do
    if answers; then exit 0; fi
    grep -qsx dockerd /proc/[0-9]*/comm || break
    sleep 0.2
  done
fi
export PATH=$PATH:/usr/sbin

# Plain first. A sandbox may lack the kernel's overlay file system or packet filter: each line gives up one of them.
start || start --storage-driver=vfs || start --iptables=false --ip6tables=false ||
  start --storage-driver=vfs --iptables=false --ip6tables=false ||
  start --storage-driver=vfs --iptables=false --ip6tables=false --bridge=none ||
  give_up "dockerd does not start here; the last lines of $LOG: $("${sudo[@]}" tail -3 "$LOG" | tr '\n' ' ')"

say "engine $(docker version --format '{{.Server.Version}}') answers; end it with: deploy/setup/docker.sh stop"
