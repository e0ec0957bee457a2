# Codex: text, a tool round trip, its web_search tool reported as removed, and an empty key.

npm_install
codex_bin=$place/node_modules/.bin/codex

# What `farebox setup` prints, pasted.
codex=("$codex_bin" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox PROMPT)
scenario as-printed 5 as_printed gpt-sim codex "${codex[@]/PROMPT/Say PONG}"
expect as-printed PONG
at_trouble gpt codex "${codex[@]/PROMPT/Say PONG}"
if [ -n "${LATEST-}" ]; then
  TOOL='exec_command {"cmd": "cat note.txt"}' EMPTY="quota exceeded" program_at_limits codex "${codex[@]}"
  return 0
fi

codex() { # codex SLUG PROMPT [FLAG…]
  mkdir -p "$home/.codex"
  cat > "$home/.codex/config.toml" <<TOML
model = "$1"
model_provider = "farebox"
[model_providers.farebox]
name = "Farebox"
base_url = "$base/v1"
env_key = "FAREBOX_KEY"
wire_api = "responses"
stream_idle_timeout_ms = 1500000
TOML
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb FAREBOX_KEY="$secret" timeout "${LIMIT-60}" \
    "$codex_bin" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "${@:3}" -- "$2" < /dev/null)
}

scenario text 5 codex gpt-sim "Say PONG"
expect text PONG

AT_LEAST=2 scenario tool-round-trip 5 codex gpt-sim 'exec_command {"cmd": "cat note.txt"}'
expect tool-round-trip "The answer is 42."

LIMIT=1500 scenario text-"$upstream" 5 codex gpt-real "Say PONG"

new_key empty 0
if LIMIT=30 codex gpt-sim "Say PONG" > "$work/empty.out" 2>&1; then echo "an empty key was served" >&2; exit 1; fi
expect empty "quota exceeded"
[ "$(requests)" = 1 ] || { echo "$(requests) requests were sent with an empty key" >&2; exit 1; }
echo "   empty: \"$(grep -i 'quota exceeded' "$work/empty.out" | head -1)\" after one request"

# Translated: the target speaks another family.
for family in chat messages; do
  scenario text-on-$family 5 codex on-$family-sim "Say PONG"
  expect text-on-$family PONG
  AT_LEAST=2 scenario tool-on-$family 5 codex on-$family-sim 'exec_command {"cmd": "cat note.txt"}'
  expect tool-on-$family "The answer is 42."
  scenario picture-on-$family 5 codex on-$family-sim "Look at it" --image dot.png
  expect picture-on-$family "I see a PNG picture of 8 x 8 pixels."
  # Here the picture is a tool's result.
  AT_LEAST=2 scenario view-on-$family 5 codex on-$family-sim "view_image {\"path\": \"$project/dot.png\"}"
  expect view-on-$family "I see a PNG picture of 8 x 8 pixels."
  scenario long-on-$family 5 codex on-$family-sim "Write 3000 words"
  LIMIT=240 ends_well $family 30 codex SLUG "Say one two three four five six seven eight nine ten"
  expect empty-on-$family "quota exceeded"
  # The recorder's limit ends the random model's answer, and Codex calls that an error.
  [ "$upstream" = simulated ] || { new_key real-on-$family 5; LIMIT=300 codex on-$family-real "Say PONG" > "$work/real-on-$family.out" 2>&1 || true; books real-on-$family 0; }
done
