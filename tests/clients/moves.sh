# Codex, Claude Code and opencode: one session each that moves between six models, with a call in every turn. The vendors are as strict
# as the published rules (vendors.py); the only refusals that may occur are those of another vendor's seal, which the gateway repeats.

# of CLIENT: the place of an installed client.
of() {
  client=$1
  read -r _ package version more < <(grep "^$1 " "$root/tests/clients/versions")
  place=$prefix/$1-$version
  npm_install
}

source "$root/tests/clients/strict.sh"
[ "$upstream" = real ] || strict_vendors

say() { printf '%s {"%s": "%s"}' "$@"; } # say TOOL FIELD VALUE: what the vendors take for a call
sees="The answer is 42."
# From every model to two others, so that each client moves between all families in both directions.
tour="chat-readable responses-sealed messages-sealed chat-sealed messages-readable responses-readable responses-sealed messages-sealed
  messages-readable chat-readable messages-sealed responses-readable chat-sealed responses-sealed chat-readable"

# The real server cannot call: its sessions are text alone, and what it says is random and mostly ends at its limit, which clients
# call an error.
cut="no such words"
if [ "$upstream" = real ]; then
  tour="on-chat-real on-responses-real on-messages-real on-chat-real" LIMIT=600
  say() { echo "Say PONG"; }
  sees="" cut="max_output_tokens|output token maximum"
fi

# session NAME COMMAND…: one turn on each model of the tour, as `COMMAND NUMBER SLUG`.
session() {
  local name=$1 number=0 slug; shift
  new_key "$name" 20
  for slug in $tour; do
    number=$((number + 1))
    "$@" "$number" "$slug" > "$work/$name-$number.out" 2>&1 || grep -qE "$cut" "$work/$name-$number.out" || { echo "  $name: turn $number on $slug failed:" >&2; tail -5 "$work/$name-$number.out" >&2; return 1; }
    expect "$name-$number" "$sees"
  done
  [ "$(requests)" -ge "$number" ] || { echo "  $name: only $(requests) requests for $number calls" >&2; return 1; }
  books "$name" 0
  echo "   $name: $number turns on $(tr ' ' '\n' <<< $tour | sort -u | grep -c .) models, $(requests) requests"
}

of codex
codex_bin=$place/node_modules/.bin/codex
codex() { # codex NUMBER SLUG
  mkdir -p "$home/.codex"
  printf 'model = "%s"\nmodel_provider = "farebox"\nmodel_reasoning_effort = "medium"\n[model_providers.farebox]\nname = "Farebox"\nbase_url = "%s/v1"\nenv_key = "FAREBOX_KEY"\nwire_api = "responses"\n' \
    "$2" "$base" > "$home/.codex/config.toml"
  local resume=(); [ "$1" = 1 ] || resume=(resume --last)
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb FAREBOX_KEY="$secret" timeout "${LIMIT-90}" \
    "$codex_bin" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "${resume[@]}" "$(say exec_command cmd "cat note.txt")" < /dev/null)
}
session codex codex

of claude-code
claude_bin=$place/node_modules/@anthropic-ai/claude-code-linux-x64/claude
claude_code() { # claude_code NUMBER SLUG
  local go_on=(); [ "$1" = 1 ] || go_on=(--continue)
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb ANTHROPIC_BASE_URL="$base/native" ANTHROPIC_AUTH_TOKEN="$secret" \
    ANTHROPIC_MODEL="$2" ANTHROPIC_DEFAULT_HAIKU_MODEL="$2" MAX_THINKING_TOKENS=2000 "${quiet[@]}" timeout "${LIMIT-90}" \
    "$claude_bin" "${go_on[@]}" -p "$(say Read file_path "$project/note.txt")" --allowedTools Read < /dev/null)
}
session claude-code claude_code

of opencode
opencode_bin=$place/node_modules/opencode-linux-x64/bin/opencode
opencode() { # opencode FAMILY NUMBER SLUG
  local npm url=$base/v1 models="" slug
  case $1 in
    chat) npm=@ai-sdk/openai-compatible ;;
    responses) npm=@ai-sdk/openai ;;
    messages) npm=@ai-sdk/anthropic; url=$base/native/v1 ;;
  esac
  for slug in $tour; do models="$models${models:+, }\"$slug\": {\"name\": \"$slug\", \"tool_call\": true, \"reasoning\": true, \"limit\": {\"context\": 131072, \"output\": 32000}}"; done
  mkdir -p "$home/.config/opencode"
  printf '{"autoupdate": false, "share": "disabled", "permission": "allow", "small_model": "farebox/%s", "provider": {"farebox": {"npm": "%s", "name": "Farebox", "options": {"baseURL": "%s", "apiKey": "%s"}, "models": {%s}}}}' \
    "$3" "$npm" "$url" "$secret" "$models" > "$home/.config/opencode/opencode.json"
  local go_on=(); [ "$2" = 1 ] || go_on=(--continue)
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb "${quiet[@]}" timeout "${LIMIT-90}" \
    "$opencode_bin" run "${go_on[@]}" -m "farebox/$3" "$(say read filePath "$project/note.txt")" < /dev/null)
}
# Not the responses package to the real server's responses: it fails there without a gateway, too.
whole=$tour
for family in chat responses messages; do
  [ "$family" != responses ] && tour=$whole || tour=${whole//on-responses-real/on-messages-real}
  session "opencode-$family" opencode "$family"
done

[ "$upstream" = real ] || only_seals_were_refused
[ "$upstream" = real ] || echo "   $(wc -l < "$work/refused") requests were repeated without another vendor's seals"
client=moves version=-
