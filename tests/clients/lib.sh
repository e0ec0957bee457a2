# What every client's script uses: pinned installs, a gateway with a temporary ledger, keys, and the check of the books.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
farebox=${FAREBOX_BIN:-${CARGO_TARGET_DIR:-$root/target}/debug/farebox}
prefix=${CLIENTS_DIR:-$root/target/clients}

# begin CLIENT: installs it and starts a gateway.
begin() {
  client=$1
  read -r _ package version more < <(grep "^$client " "$root/tests/clients/versions")
  place=$prefix/$client-$version
  mkdir -p "$prefix"
  work=$(mktemp -d "$prefix/run-$client-XXXXXX")
  home=$work/home
  project=$work/project
  mkdir -p "$home" "$project"
  (cd "$project" && git init -q && git config user.email t@example.com && git config user.name t \
    && echo "The answer is 42." > note.txt && git add . && git commit -qm start)
  [ -x "$farebox" ] || (cd "$root" && cargo build --quiet --bin farebox)
  trap 'for pid in ${gateway_pid-} ${recorder_pid-}; do kill "$pid" 2>/dev/null || true; done' EXIT
  start_recorder
  start_gateway
  echo "== $client $version"
}

npm_install() {
  [ -f "$place/.done" ] || { npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$place" "$package@$version" ${more-} && touch "$place/.done"; }
}

pip_install() {
  [ -f "$place/.done" ] || { python3 -m venv "$place" && "$place/bin/pip" install -q "$package==$version" && touch "$place/.done"; }
}

# The recorder stands between gateway and provider and writes down what the provider itself counted.
start_recorder() {
  upstream=simulated
  [ -n "${UPSTREAM_URL-}" ] || return 0
  upstream=real
  python3 "$root/tests/clients/record.py" "$UPSTREAM_URL" "$work/recorded.jsonl" > "$work/recorder.port" 2> "$work/recorder.log" &
  recorder_pid=$!
  wait_for "the recorder" test -s "$work/recorder.port"
}

start_gateway() {
  export FAREBOX_CATALOG=$work/catalog.toml FAREBOX_ROUTES=$work/routes.toml FAREBOX_LEDGER=$work/farebox.db FAREBOX_OPERATOR=clients
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  base=http://127.0.0.1:$port
  : > "$FAREBOX_CATALOG"; : > "$FAREBOX_ROUTES"
  printf '[provider.sim]\nsimulated = true\n\n' >> "$FAREBOX_ROUTES"
  printf '[provider.picky]\nsimulated = true\nrefuse_beta = ["context-management-2025-06-27"]\n\n' >> "$FAREBOX_ROUTES"
  if [ "$upstream" = real ]; then
    cat >> "$FAREBOX_ROUTES" <<TOML
[provider.real]
base_url = "http://127.0.0.1:$(cat "$work/recorder.port")/v1"
speaks   = ["chat", "responses", "messages"]
key      = { env = "UPSTREAM_KEY" }
timeouts = { connect = "5s", first_byte = "900s", idle = "900s", whole = "1800s" }

TOML
    publish claude-real messages real upstream-model 1024; publish gpt-real chat real upstream-model 1024
  else
    publish claude-real messages sim sim 1024; publish gpt-real chat sim sim 1024
  fi
  publish claude-sim messages sim sim 32000; publish gpt-sim responses sim sim 32000
  publish claude-picky messages picky sim 32000
  publish claude-cut messages sim sim-cut 32000; publish gpt-cut chat sim sim-cut 32000
  publish claude-busy messages sim sim-529 32000; publish gpt-busy chat sim sim-529 32000
  UPSTREAM_KEY=${UPSTREAM_KEY-unused-key} "$farebox" serve --listen "127.0.0.1:$port" --admin-listen 127.0.0.1:0 2> "$work/gateway.log" &
  gateway_pid=$!
  wait_for "the gateway" curl -sfI "$base/v1" -o /dev/null
}

# publish SLUG BEST_PATH PROVIDER MODEL MAX_OUTPUT; the odd prices make a mistake visible.
publish() {
  cat >> "$FAREBOX_CATALOG" <<TOML
[[model]]
model             = "$1"
slug              = "$1"
provider          = "Tests"
best_path         = "$2"
best_environments = ["tests"]
price             = { input = "1.37", output = "9.11", cache_read = "0.13", cache_write = "1.73", cache_write_1h = "2.19", per_request = "0.000007" }
capabilities      = ["vision", "tools", "streaming"]
limits            = { context = 131_072, max_output = $5 }

TOML
  printf '[[route]]\nslug    = "%s"\ntargets = [ { provider = "%s", model = "%s" } ]\n\n' "$1" "$3" "$4" >> "$FAREBOX_ROUTES"
}

# new_key NAME USD: sets key_id and secret.
new_key() {
  local made
  if [ "$2" = 0 ]; then made=$("$farebox" keys create --new-ledger --label "$1" --json)
  else made=$("$farebox" keys create --new-ledger --label "$1" --balance "$2" --reference "first-$1" --json); fi
  key_id=$(field id <<< "$made"); secret=$(field secret <<< "$made"); label=$1
}

top_up() { "$farebox" keys top-up "$key_id" "$1" --reference "top-up-$label" --json > /dev/null; }

field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# scenario NAME USD COMMAND…: a fresh key, the command, then the books.
scenario() {
  local name=$1 usd=$2; shift 2
  new_key "$name" "$usd"
  local began=$SECONDS
  if ! "$@" > "$work/$name.out" 2>&1; then
    echo "  $name: the client failed after $((SECONDS - began)) s; see $work/$name.out" >&2
    tail -5 "$work/$name.out" >&2
    return 1
  fi
  books "$name" "$((SECONDS - began))"
}

# books NAME SECONDS: every charge of the key is usage times price, and the usage is the provider's.
books() {
  "$farebox" ledger verify > /dev/null
  python3 "$root/tests/clients/books.py" "$farebox" "$key_id" "$FAREBOX_CATALOG" "$work/recorded.jsonl" "$1" "$2"
}

# requests: how many model requests of the current key ended, refused ones included.
requests() { plain_log | grep -c "key=$key_id.*family=" || true; }

plain_log() { sed 's/\x1b\[[0-9;]*m//g' "$work/gateway.log"; }

expect() { # expect NAME TEXT: the client's output has the text
  grep -qiF -- "$2" "$work/$1.out" || { echo "  $1: \"$2\" is missing from $work/$1.out:" >&2; tail -8 "$work/$1.out" >&2; return 1; }
}

wait_for() {
  local what=$1; shift
  for _ in $(seq 200); do "$@" 2> /dev/null && return 0; sleep 0.05; done
  echo "waited in vain for $what; see $work" >&2
  return 1
}

finish() {
  kill -TERM "$gateway_pid"; wait "$gateway_pid" || { echo "the gateway did not stop well; see $work/gateway.log" >&2; return 1; }
  echo "   $client $version ($upstream upstream): all good"
  [ -n "${KEEP-}" ] || rm -rf "$work"
}

# as_printed SLUG [PROGRAM COMMAND…]: pastes what `farebox setup` prints for this client. Where it starts PROGRAM, COMMAND runs.
as_printed() {
  local slug=$1; shift
  mkdir -p "$work/bin"
  if [ $# -gt 0 ]; then
    printf '#!/bin/sh\nexec%s < /dev/null\n' "$(printf ' %q' "${@:2}")" > "$work/bin/$1"
    chmod +x "$work/bin/$1"
  fi
  "$farebox" setup "$client" --base-url "$base" --key "$secret" --model "$slug" --json > "$work/printed.json"
  env -i PATH="$work/bin:$PATH" HOME="$home" TERM=dumb CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 \
    timeout 120 python3 "$root/tests/clients/paste.py" "$home" "$project" "$place" < "$work/printed.json"
}

# at_trouble FAMILY [PROGRAM COMMAND…]: how often and how long the client, as printed, tries when the balance is empty, the provider
# is overloaded and a stream breaks. FAMILY is gpt or claude. These are the figures of docs/customers.md.
at_trouble() {
  local family=$1; shift
  trouble empty 0 "$family-sim" "$@"
  trouble busy 5 "$family-busy" "$@"
  trouble cut 5 "$family-cut" "$@"
}

trouble() { # trouble NAME USD SLUG [PROGRAM COMMAND…]
  local name=$1 usd=$2; shift 2
  new_key "$name" "$usd"
  local began=$(date +%s%N)
  as_printed "$@" > "$work/$name.out" 2>&1 || true
  echo "   $name: $(requests) requests in $((($(date +%s%N) - began) / 100000000))e-1 s"
  books "$name" 0
}
