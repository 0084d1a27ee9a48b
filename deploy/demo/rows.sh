# The client of databases.sh: writes rows to a database that moves, finds it again by asking the cluster where it is, and
# keeps a list of what was acknowledged. Sourced, not run.
#
# A row whose answer was lost is never sent again: each connection counts from a number of its own, so that a row that is
# there twice, or missing although it was acknowledged, is the cluster's doing.

REDIS_KEYS=2000

start_writing() {
  docker run -d --rm --network host --name "$LAN-client" --entrypoint sleep postgres:local 100000 >/dev/null || return
  write_ca
  ask_where orders || return
  psql_once orders -c "CREATE TABLE rows (n bigint NOT NULL)" -c "CREATE TABLE ballast AS SELECT i, 0 AS v,
    repeat(md5(i::text), 4) AS text FROM generate_series(1, $BALLAST_ROWS) i" -c "CHECKPOINT" >/dev/null || return
  : >"$DIR/writing"
  : >"$DIR/acknowledged"
  keep_connected insert_rows >>"$DIR/acknowledged" 2>>"$DIR/client.log" &
  WRITERS=($!)
  keep_connected update_ballast >/dev/null 2>>"$DIR/client.log" &
  WRITERS+=($!)
  within $READY_S rows_acknowledged 100
}

# Sends what a function prints to wherever the database is; begins with the next connection when one has ended.
keep_connected() { # function
  local connection=0
  trap - EXIT
  while [ -e "$DIR/writing" ]; do
    if ask_where orders; then
      connection=$((connection + 1))
      "$1" $connection 2>/dev/null | psql_now -v ON_ERROR_STOP=1
    fi
    sleep 0.1 # Not to ask the cluster more often than it is worth.
  done
}

insert_rows() { # connection
  local n=$(($1 * 10000000))
  while [ -e "$DIR/writing" ]; do
    n=$((n + 1))
    echo "INSERT INTO rows VALUES ($n) RETURNING n;" || return
  done
}

update_ballast() { # connection
  local part=0
  while [ -e "$DIR/writing" ]; do
    part=$(((part + 1) % 100))
    echo "UPDATE ballast SET v = v + 1 WHERE i % 100 = $part; SELECT pg_sleep(0.1);" || return
  done
}

# psql in the client's container. The password is in nobody's arguments.
psql_now() {
  PGPASSWORD=$PASSWORD_NOW PGHOST=$HOST_NOW PGPORT=$PORT_NOW PGUSER=app PGDATABASE=app PGCONNECT_TIMEOUT=2 \
    docker exec -i -e PGPASSWORD -e PGHOST -e PGPORT -e PGUSER -e PGDATABASE -e PGCONNECT_TIMEOUT "$LAN-client" \
    psql -qAt "$@"
}
psql_once() { # name arguments...
  shift
  psql_now -v ON_ERROR_STOP=1 "$@" </dev/null 2>>"$DIR/client.log"
}

rows_acknowledged() { [ "$(wc -l <"$DIR/acknowledged")" -ge "$1" ]; }

# Reads the list of the client first and the table then: the client goes on in between.
rows_are_there() { # node
  local before
  before=$(wc -l <"$DIR/acknowledged")
  within $READY_S rows_acknowledged $((before + 10)) || { why "the client can't write any more"; return 1; }
  # The last line may be half written.
  sed '$d' "$DIR/acknowledged" | sort >"$DIR/acknowledged.sorted"
  ask_where orders || return
  [ "$HOST_NOW" = "$(machine_address "$1")" ] || { why "it is said to be at $HOST_NOW"; return 1; }
  psql_once orders -c "SELECT n FROM rows" | sort >"$DIR/rows.sorted" || return
  local twice lost
  twice=$(uniq -d "$DIR/rows.sorted" | wc -l)
  lost=$(comm -23 "$DIR/acknowledged.sorted" "$DIR/rows.sorted" | wc -l)
  [ "$twice" = 0 ] && [ "$lost" = 0 ] || { why "$lost acknowledged rows are missing, $twice are there twice"; return 1; }
  detail "$(wc -l <"$DIR/acknowledged.sorted") rows; $(psql_once orders -c "SELECT pg_size_pretty(pg_database_size('app'))")"
}

stop_writing() {
  rm -f "$DIR/writing"
  docker rm -f "$LAN-client" >/dev/null || return
  wait "${WRITERS[@]}"
  docker run -d --rm --network host --name "$LAN-client" --entrypoint sleep postgres:local 100000 >/dev/null
}

# === Redis

redis_now() {
  REDISCLI_AUTH=$PASSWORD_NOW docker run --rm -i --network host -e REDISCLI_AUTH redis:local \
    redis-cli -h "$HOST_NOW" -p "$PORT_NOW"
}

set_keys() {
  ask_where cache || return
  seq $REDIS_KEYS | sed 's/.*/SET key:& value:&/' | redis_now | sort | uniq -c | grep -q "$REDIS_KEYS OK"
}

keys_are_there_after_restart() {
  ctl databases restart cache >>"$DIR/ctl.log" || return
  within "$START_S" keys_are_there 2>/dev/null # It may not be up yet.
}

keys_are_there() {
  ask_where cache || return
  seq $REDIS_KEYS | sed 's/.*/GET key:&/' | redis_now | tr -d '"' | diff -q - <(seq $REDIS_KEYS | sed 's/^/value:/') >/dev/null ||
    { why "not every key has its value"; return 1; }
  detail "$REDIS_KEYS keys"
}
