#!/usr/bin/env bash
# What schemathesis makes of deploy/openapi.json is sent to a real cluster: three servers, two agents with the memory runtime.
# No answer may be a server's own failure, and none may have a status, a content type, a shape or a code that isn't in the
# document. With a root token, with one that only reads, and without any.
#
# usage: fuzz-api.sh
# env:   CARA_BIN               folder of the binaries (default: target/release)
#        SEED                   of the requests (default: 1)
#        SECONDS_EACH           how long each round may take (default: 25)
#        CARA_REQUIRE_DOCKER=1  a run that demands everything: without schemathesis it fails
# Without Python, pip or a network it is skipped, and says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
BIN=${CARA_BIN:-target/release}
SEED=${SEED:-1}
SECONDS_EACH=${SECONDS_EACH:-25}
. deploy/demo/lib.sh
. deploy/demo/cluster.sh

# What would end the run and find nothing out: answers without end (the tests of control/tests/api read those), and requests that
# take the cluster's members or this run's own tokens away.
EXCLUDED=(--exclude-path /api/v1/watch --exclude-path-regex '/logs(/|$)'
  --exclude-operation-id deleteServersServer --exclude-operation-id deleteTokensId)
# The limits have tests of their own; here they would only slow the requests down.
RUN_FLAGS=(--rate-per-token 0 --rate-per-address 0)
DOCUMENT=$PWD/deploy/openapi.json
CHECKS=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
CHECKS+=,response_headers_conformance,missing_required_header,unsupported_method,allow_header_conformance,ignored_auth
CHECKS+=,use_after_free

main() {
  local st
  if ! st=$(deploy/setup/schemathesis.sh); then
    [ "${CARA_REQUIRE_DOCKER:-0}" != 1 ] || die "no schemathesis, and CARA_REQUIRE_DOCKER=1 demands everything"
    echo "SKIPPED (no schemathesis): the API against its OpenAPI document"
    exit 0
  fi
  need_programs test-api
  begin_run fuzz-api
  title "A cluster"
  step "the first server leads" init_first
  step "the second votes" join_server s2
  step "the third votes" join_server s3
  step "node n1 is ready" enrol n1
  step "node n2 is ready" enrol n2
  step "a workload of each kind" apply_examples
  write_ca
  title "Requests from the document, seed $SEED"
  step "with a root token" fuzz "$st" root "$CARA_TOKEN"
  step "with a token that reads" fuzz "$st" reader "$(ctl tokens create reader --ability read -o json | json_field token)"
  # Strangers are told that they are strangers, also where there is no such method.
  step "without a token" fuzz "$st" nobody "" --exclude-checks unsupported_method
  title "The cluster afterwards"
  step "all servers vote" all_vote
  echo "fuzz-api: ok"
}

enrol() { # name
  local token
  token=$(ctl nodes join-token -o json | json_field token) || return
  "$BIN/cara-agent" --data-dir "$DIR/$1" --name "$1" --advertise 127.0.0.1 --runtime memory --token "$token" \
    >"$DIR/$1.log" 2>&1 </dev/null &
  PID[$1]=$!
  disown
  within $READY_S node_is_ready "$1"
}

apply_examples() { ctl apply -f deploy/examples -o json >/dev/null; }

# Names that exist, so that requests get past "not found". What would take the nodes away gets names of chance.
names() {
  printf '[[operations]]\ninclude-path-regex = "%s"\nparameters = { "path.name" = "%s" }\n' \
    '/apps/' hello '/databases/' ledger '/projects/' shop
  printf '[[operations]]\ninclude-path-regex = "/nodes/.node."\nexclude-method = "DELETE"\n'
  printf 'parameters = { "path.node" = "n1" }\n'
}

# The document goes to a follower: what it hands over is tested on the way.
fuzz() { # program who token option...
  local program=$1 who=$2 token=$3 follower made config=$DIR/$2.toml
  shift 3
  follower=$(ctl servers -o json | json_object role follower | json_field address)
  { [ -z "$token" ] || printf '[headers]\nAuthorization = "Bearer %s"\n' "$token"; names; } >"$config"
  # What it remembers of a run belongs to the run.
  (cd "$DIR" && "$program" --config-file "$config" run "$DOCUMENT" --url "https://$follower" --tls-verify "$DIR/ca.pem" \
    --checks "$CHECKS" --seed "$SEED" --max-time "$SECONDS_EACH" --request-timeout 15 --workers 1 \
    --suppress-health-check all "${EXCLUDED[@]}" "$@") >"$DIR/$who.log" 2>&1 || {
    cat "$DIR/$who.log" >&2
    why "see above; again with SEED=$SEED"
    return 1
  }
  made=$(grep -oE '[0-9]+ generated' "$DIR/$who.log" | tail -n 1)
  [ -n "$made" ] || { why "no request was made within $SECONDS_EACH s: set SECONDS_EACH higher"; return 1; }
  detail "$made requests, $(sed -n 's/^ *Tested: *//p' "$DIR/$who.log" | tail -n 1) operations"
}

clean_up() {
  local status=$? name
  trap - EXIT INT TERM
  for name in "${!PID[@]}"; do kill -KILL "${PID[$name]}" 2>/dev/null || true; done
  rm -rf "$DIR"
  exit $status
}

main "$@"
