# Errors of the customer's own making inside a stream, as Codex, Claude Code and the OpenAI libraries show them. The provider is
# instream.py: each model begins to answer and then fails in its own way.

of_client codex; npm_install; codex_bin=$place/node_modules/.bin/codex
of_client claude-code; npm_install; claude_bin=$place/node_modules/@anthropic-ai/claude-code-linux-x64/claude
of_client openai-node; npm_install; openai_node=$place
of_client openai-python; pip_install; openai_python=$place
client=in-stream version=programs

python3 "$root/tests/clients/instream.py" > "$work/instream.port" 2> "$work/instream.log" &
recorder_pid=$!
wait_for "the failing provider" test -s "$work/instream.port"
printf '[provider.failing]\nbase_url = "http://127.0.0.1:%s/v1"\nspeaks = ["chat", "responses", "messages"]\nkey = { env = "UPSTREAM_KEY" }\n\n' \
  "$(cat "$work/instream.port")" >> "$FAREBOX_ROUTES"
publish gpt-context responses failing fails-context 32000
publish gpt-prompt responses failing fails-prompt 32000
publish claude-context messages failing fails-context 32000
publish gpt-tool chat failing fails-tool 32000
published() { "$farebox" models --format json | grep -q gpt-tool && curl -sf -o /dev/null -H "Authorization: Bearer $secret" "$base/v1/models/gpt-tool"; }
new_key published 1
wait_for "the failing models" published

codex() { # codex SLUG
  mkdir -p "$home/.codex"
  printf 'model = "%s"\nmodel_provider = "farebox"\n[model_providers.farebox]\nname = "Farebox"\nbase_url = "%s/v1"\nenv_key = "FAREBOX_KEY"\nwire_api = "responses"\n' \
    "$1" "$base" > "$home/.codex/config.toml"
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb FAREBOX_KEY="$secret" timeout 60 \
    "$codex_bin" exec --skip-git-repo-check "Say PONG" < /dev/null)
}

claude_code() { # claude_code SLUG
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb ANTHROPIC_BASE_URL="$base/native" ANTHROPIC_AUTH_TOKEN="$secret" \
    ANTHROPIC_MODEL="$1" ANTHROPIC_DEFAULT_HAIKU_MODEL="$1" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
    DISABLE_AUTOUPDATER=1 timeout 60 "$claude_bin" -p "Say PONG" < /dev/null)
}

# shows NAME TEXT COMMAND…: the client fails, and says so in words that have TEXT.
shows() {
  local name=$1 text=$2; shift 2
  new_key "$name" 5
  "$@" > "$work/$name.out" 2>&1 || true
  echo "   $name: $(requests) requests"
  grep -i -m2 -- "$text" "$work/$name.out" | cut -c1-300 | sed 's/^/     | /'
  expect "$name" "$text"
}

shows codex-context "context window" codex gpt-context
shows codex-prompt "it was flagged" codex gpt-prompt
shows claude-context "prompt is too long" claude_code claude-context
cp "$root/tests/clients/instream_openai.mjs" "$openai_node/"
library() { env -i PATH="$PATH" BASE="$base" KEY="$secret" timeout 60 "$@"; }
shows openai-node "tool_use_failed" library node "$openai_node/instream_openai.mjs"
shows openai-python "tool_use_failed" library "$openai_python/bin/python" "$root/tests/clients/instream_openai.py"

# Nobody's breaker opened: the models are still asked.
curl -sf -H "Authorization: Bearer $secret" "$base/v1/chat/completions" -H 'content-type: application/json' \
  -d '{"model":"gpt-tool","stream":true,"messages":[{"role":"user","content":"hi"}]}' | grep -q tool_use_failed
"$farebox" ledger verify > /dev/null
