# One session for each real client, Codex, Claude Code and opencode with each of its three packages, that moves along a tour of slugs.
# Whoever sources this sets `tour`, and may change `say` (what a turn asks), `sees` (what it must show) and `cut` (an ending that is
# no failure) and `opencode_skips` (a slug that its responses package does not visit).

# of CLIENT: the place of an installed client.
of() {
  client=$1
  of_client "$1"
  npm_install
}

say() { printf '%s {"%s": "%s"}' "$@"; } # say TOOL FIELD VALUE: what the vendors take for a call
sees="The answer is 42."
cut="no such words"

# session NAME COMMAND…: one turn on each model of the tour, as `COMMAND NUMBER SLUG`.
session() {
  local name=$1 number=0 failed=0 slug; shift
  new_key "$name" 20
  for slug in $tour; do
    number=$((number + 1))
    "$@" "$number" "$slug" > "$work/$name-$number.out" 2>&1 || grep -qE "$cut" "$work/$name-$number.out" \
      || { echo "  $name: turn $number on $slug failed:" >&2; tail -5 "$work/$name-$number.out" >&2; failed=1; continue; }
    expect "$name-$number" "$sees" || failed=1
  done
  [ "$(requests)" -ge "$number" ] || { echo "  $name: only $(requests) requests for $number calls" >&2; return 1; }
  books "$name" 0
  echo "$name $key_id $number" >> "$work/sessions"
  return "$failed"
}

codex() { # codex NUMBER SLUG
  mkdir -p "$home/.codex"
  printf 'model = "%s"\nmodel_provider = "farebox"\nmodel_reasoning_effort = "medium"\n[model_providers.farebox]\nname = "Farebox"\nbase_url = "%s/v1"\nenv_key = "FAREBOX_KEY"\nwire_api = "responses"\n' \
    "$2" "$base" > "$home/.codex/config.toml"
  local resume=(); [ "$1" = 1 ] || resume=(resume --last)
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb FAREBOX_KEY="$secret" timeout "${LIMIT-90}" \
    "$codex_bin" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "${resume[@]}" "$(say exec_command cmd "cat note.txt")" < /dev/null)
}

claude_code() { # claude_code NUMBER SLUG
  local go_on=(); [ "$1" = 1 ] || go_on=(--continue)
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb ANTHROPIC_BASE_URL="$base/native" ANTHROPIC_AUTH_TOKEN="$secret" \
    ANTHROPIC_MODEL="$2" ANTHROPIC_DEFAULT_HAIKU_MODEL="$2" MAX_THINKING_TOKENS=2000 "${quiet[@]}" timeout "${LIMIT-90}" \
    "$claude_bin" "${go_on[@]}" -p "$(say Read file_path "$project/note.txt")" --allowedTools Read < /dev/null)
}

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
  # It quotes an argument with a space once more.
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb "${quiet[@]}" timeout "${LIMIT-90}" \
    "$opencode_bin" run "${go_on[@]}" -m "farebox/$3" $(say read filePath "$project/note.txt") < /dev/null)
}

# sessions: one for each client. A session that fails is told, and the others run.
sessions() {
  local family bad=0
  of codex; codex_bin=$place/node_modules/.bin/codex
  session codex codex || bad=1
  of claude-code; claude_bin=$place/node_modules/@anthropic-ai/claude-code-linux-x64/claude
  session claude-code claude_code || bad=1
  of opencode; opencode_bin=$place/node_modules/opencode-linux-x64/bin/opencode
  local all=$tour
  for family in chat responses messages; do
    [ "$family" != responses ] || tour=${all//${opencode_skips-nothing}/on-messages-real}
    session "opencode-$family" opencode "$family" || bad=1
    tour=$all
  done
  return "$bad"
}

# recorded TITLE: the page of these sessions, written to RESULTS if that is set.
recorded() {
  touch "$work/refused"
  plain_log | python3 "$root/tests/clients/sessions.py" "$1" "$work" "$root/tests/clients/versions" > "$work/page.md"
  cat "$work/page.md"
  [ -z "${RESULTS-}" ] || cp "$work/page.md" "$RESULTS"
}
