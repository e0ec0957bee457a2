# Claude Code: print, a tool round trip, a cut stream, and an empty key that says so at once and works again after a top-up.

npm_install
claude_bin=$place/node_modules/@anthropic-ai/claude-code-linux-x64/claude

# What `farebox setup` prints, pasted.
printed=("$claude_bin" --allowedTools Read -p PROMPT)
scenario as-printed 5 as_printed claude-sim claude "${printed[@]/PROMPT/Say PONG}"
expect as-printed PONG
at_trouble claude claude "${printed[@]/PROMPT/Say PONG}"
if [ -n "${LATEST-}" ]; then
  OWN=claude TOOL="Read {\"file_path\": \"$project/note.txt\"}" program_at_limits claude "${printed[@]}"
  return 0
fi

claude_code() { # claude_code SLUG ARGUMENT…
  local slug=$1; shift
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb ANTHROPIC_BASE_URL="$base/native" ANTHROPIC_AUTH_TOKEN="$secret" \
    ANTHROPIC_MODEL="$slug" ANTHROPIC_DEFAULT_HAIKU_MODEL="$slug" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
    DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 API_TIMEOUT_MS=1500000 timeout "${LIMIT-60}" "$claude_bin" "$@" < /dev/null)
}

scenario print-text 5 claude_code claude-sim -p "Say PONG"
expect print-text PONG

AT_LEAST=2 scenario tool-round-trip 5 claude_code claude-sim -p "Read {\"file_path\": \"$project/note.txt\"}" --allowedTools Read
expect tool-round-trip "The answer is 42."

LIMIT=1500 scenario print-"$upstream" 5 claude_code claude-real -p "Say PONG"

# A beta flag that the provider must not be sent: the 400's words let the client leave it out by itself.
scenario refused-flag 5 claude_code claude-picky -p "Say PONG"
expect refused-flag PONG
[ "$(requests)" = 2 ] || { echo "refused-flag: $(requests) requests, expected a 400 and an answer" >&2; exit 1; }

# Out of balance: one request; a top-up of the same key helps.
new_key empty 0
began=$SECONDS
if LIMIT=20 claude_code claude-sim -p "Say PONG" > "$work/empty.out" 2>&1; then echo "an empty key was served" >&2; exit 1; fi
took=$((SECONDS - began))
expect empty "out of balance"
[ "$(requests)" = 1 ] || { echo "$(requests) requests were sent with an empty key" >&2; exit 1; }
echo "   empty: \"out of balance\" after $took s and one request"
top_up 1
claude_code claude-sim -p "Say PONG" > "$work/topped-up.out" 2>&1
expect topped-up PONG
books topped-up $((SECONDS - began))

# A stream that breaks: sent again once, then given up.
new_key cut 5
LIMIT=120 claude_code claude-cut -p "Say one two three four five six seven eight nine ten" > "$work/cut.out" 2>&1 || true
[ "$(requests)" -le 30 ] || { echo "$(requests) requests for a cut stream" >&2; exit 1; }
echo "   cut: $(requests) requests"
books cut 0

# Translated: the target speaks another family.
for family in chat responses; do
  scenario text-on-$family 5 claude_code on-$family-sim -p "Say PONG"
  expect text-on-$family PONG
  AT_LEAST=2 scenario tool-on-$family 5 claude_code on-$family-sim -p "Read {\"file_path\": \"$project/note.txt\"}" --allowedTools Read
  expect tool-on-$family "The answer is 42."
  AT_LEAST=2 scenario picture-on-$family 5 claude_code on-$family-sim -p "Read {\"file_path\": \"$project/dot.png\"}" --allowedTools Read
  expect picture-on-$family "I see a PNG picture of 8 x 8 pixels."
  scenario long-on-$family 5 claude_code on-$family-sim -p "Give me 3000 words"
  [ "$(wc -w < "$work/long-on-$family.out")" -ge 3000 ] || { echo "long-on-$family: not 3000 words" >&2; exit 1; }
  LIMIT=240 ends_well $family 30 claude_code SLUG -p "Say one two three four five six seven eight nine ten"
  expect empty-on-$family "out of balance"
  # The recorder's limit ends the random model's answer. On chat Claude Code asks three more times for the rest and calls it an
  # error; llama.cpp's responses say "completed" all the same.
  [ "$upstream" = simulated ] || { new_key real-on-$family 5; LIMIT=1500 claude_code on-$family-real -p "Say PONG" > "$work/real-on-$family.out" 2>&1 || true; books real-on-$family 0; }
done
