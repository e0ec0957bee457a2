# Codex and opencode, told to open a WebSocket first: how many attempts they make at it, and how many seconds an answer takes, compared
# with a run over HTTP.

of_client codex; npm_install; codex_bin=$place/node_modules/.bin/codex
of_client opencode; npm_install; opencode_bin=$place/node_modules/opencode-linux-x64/bin/opencode
client=websocket version=programs

python3 "$root/tests/clients/upgrades.py" "$port" "$work/upgrades" > "$work/upgrades.port" &
recorder_pid=$!
wait_for "the forwarder" test -s "$work/upgrades.port"
base=http://127.0.0.1:$(cat "$work/upgrades.port")

codex() { # codex WEBSOCKETS: true or false
  mkdir -p "$home/.codex"
  printf 'model = "gpt-sim"\nmodel_provider = "farebox"\n[model_providers.farebox]\nname = "Farebox"\nbase_url = "%s/v1"\nenv_key = "FAREBOX_KEY"\nwire_api = "responses"\nsupports_websockets = %s\n' \
    "$base" "$1" > "$home/.codex/config.toml"
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb FAREBOX_KEY="$secret" timeout 90 \
    "$codex_bin" exec --skip-git-repo-check "Say PONG" < /dev/null)
}

opencode() { # opencode WEBSOCKETS
  mkdir -p "$home/.config/opencode"
  printf '{"autoupdate": false, "share": "disabled", "small_model": "openai/gpt-sim", "provider": {"openai": {"options": {"baseURL": "%s/v1", "apiKey": "%s"}, "models": {"gpt-sim": {"name": "gpt-sim"}}}}}' \
    "$base" "$secret" > "$home/.config/opencode/opencode.json"
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb "${quiet[@]}" OPENCODE_EXPERIMENTAL_WEBSOCKETS="$1" timeout 90 \
    "$opencode_bin" run -m openai/gpt-sim Say PONG < /dev/null)
}

for program in codex opencode; do
  for websockets in false true; do
    : > "$work/upgrades"
    began=$(date +%s%N)
    scenario "$program-$websockets" 5 "$program" "$websockets"
    expect "$program-$websockets" PONG
    refused=$(wc -l < "$work/upgrades")
    echo "   $program, WebSockets $websockets: $(requests) requests, $refused WebSockets asked for, $((($(date +%s%N) - began) / 1000000)) ms"
  done
done
