# The client of databases.sh for what has no state: asks a web server all the time, wherever the cluster says that it is, and
# counts the answers. Sourced, not run.
#
# It never asks twice for one answer: a request that fails is a request that a user would have missed.

WEB_PORT=18080
# A page that is the same everywhere, so that a wrong answer is seen as well.
PAGE='Hello from a container'

# It takes a while to come up, as real ones do: whoever is sent there too early notices.
apply_web() { # node
  ctl apply -f - >>"$DIR/ctl.log" <<YAML || return
apiVersion: caravanserai/v1
kind: App
metadata: { name: web }
spec:
  image: caravanserai/busybox:local
  command: [busybox, sh, -c]
  args: ["trap 'exit 0' TERM; echo '$PAGE' > /www/index.html; sleep 4 & wait \$!; busybox httpd -f -p 80 -h /www & wait"]
  ports: [{ container: 80, host: $WEB_PORT, bindAddress: public }]
  healthCheck: { type: http, path: /, port: 80, interval: 1s }
YAML
  within "$START_S" web_runs || return
  [ "$(json_field nodeName < <(ctl get app web -o json))" = "$1" ] || move_web "$1"
}

web_runs() { ctl get app web -o json | grep -q '"phase": *"Running"'; }

# Where it is now. While no server leads nobody knows better than before.
ask_where_web() {
  local address
  address=$(ask_servers apps/web address) && WEB_NOW=$address
  [ -n "${WEB_NOW:-}" ]
}

start_asking() {
  write_ca
  : >"$DIR/asking"
  : >"$DIR/answers"
  keep_asking &
  ASKER=$!
  within "$READY_S" answers_came 20
}

keep_asking() {
  trap - EXIT
  local answer
  while [ -e "$DIR/asking" ]; do
    ask_where_web || { echo "failed: nobody says where it is" >>"$DIR/answers"; continue; }
    if answer=$(curl -sS -m 3 "http://$WEB_NOW/" 2>&1) && [ "$answer" = "$PAGE" ]; then
      echo "ok $WEB_NOW" >>"$DIR/answers"
    else
      echo "failed: $WEB_NOW: $answer" >>"$DIR/answers"
    fi
  done
}

answers_came() { [ "$(wc -l <"$DIR/answers")" -ge "$1" ]; }

move_web() { # node
  "$BIN/caractrl" nodes move app web --to "$1" --yes >"$DIR/move.log" 2>&1 </dev/null || { why "$(tail -n 1 "$DIR/move.log")"; return 1; }
}

# Moves it; what is given is done meanwhile. Not one request fails, and in the end the new copy answers them.
move_unnoticed() { # node meanwhile...
  local node=$1 mover before failed
  shift
  before=$(wc -l <"$DIR/answers")
  move_web "$node" &
  mover=$!
  "$@" || { why "${WHY:-$*} ($(tail -n 1 "$DIR/move.log"))"; return 1; }
  wait $mover || { why "$(tail -n 1 "$DIR/move.log")"; return 1; }
  answers_come_from "$node" || return
  failed=$(tail -n +$((before + 1)) "$DIR/answers" | grep -m 1 '^failed')
  [ -z "$failed" ] || { why "$failed"; return 1; }
  detail "$(($(wc -l <"$DIR/answers") - before)) requests, none failed${KILLED:+; $KILLED}"
  KILLED=
}

answers_come_from() { # node
  local all
  all=$(wc -l <"$DIR/answers")
  within "$READY_S" answers_came $((all + 5)) || return
  [ "$(tail -n 1 "$DIR/answers")" = "ok $(machine_address "$1"):$WEB_PORT" ] || { why "$(tail -n 1 "$DIR/answers")"; return 1; }
}

stop_asking() {
  rm -f "$DIR/asking"
  wait "$ASKER"
  ctl delete app web >>"$DIR/ctl.log" || return
  detail "$(wc -l <"$DIR/answers") requests in all"
}
