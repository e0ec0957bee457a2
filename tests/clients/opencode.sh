# opencode on all three families: text, a tool round trip, the real provider, and a cut stream that must not loop.

npm_install
opencode_bin=$place/node_modules/opencode-linux-x64/bin/opencode

# What `farebox setup` prints, pasted.
# An argument with a space would be quoted again by opencode.
printed=(env OPENCODE_CONFIG_CONTENT='{"autoupdate": false, "share": "disabled"}' sh -c 'exec "$0" run $1' "$opencode_bin" PROMPT)
scenario as-printed 5 as_printed gpt-sim opencode "${printed[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt opencode "${printed[@]/PROMPT/Say hello}"
if [ -n "${LATEST-}" ]; then
  TOOL="read {\"filePath\":\"$project/note.txt\"}" program_at_limits opencode "${printed[@]}"
  return 0
fi

opencode() { # opencode FAMILY SLUG WORD…
  local family=$1 slug=$2 npm url=$base/v1
  shift 2
  case $family in
    chat) npm=@ai-sdk/openai-compatible ;;
    responses) npm=@ai-sdk/openai ;;
    messages) npm=@ai-sdk/anthropic; url=$base/native/v1 ;;
  esac
  mkdir -p "$home/.config/opencode"
  cat > "$home/.config/opencode/opencode.json" <<JSON
{"autoupdate": false, "share": "disabled", "permission": "allow", "small_model": "farebox/$slug",
 "provider": {"farebox": {"npm": "$npm", "name": "Farebox", "options": {"baseURL": "$url", "apiKey": "$secret"},
  "models": {"$slug": {"name": "$slug", "tool_call": true, "attachment": true,
   "modalities": {"input": ["text", "image"], "output": ["text"]}, "limit": {"context": 131072, "output": 32000}}}}}}
JSON
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 \
    OPENCODE_DISABLE_LSP_DOWNLOAD=1 timeout "${LIMIT-90}" "$opencode_bin" run -m "farebox/$slug" "$@" < /dev/null)
}

for family in chat responses messages; do
  scenario "$family"-text 5 opencode "$family" gpt-sim Say PONG
  expect "$family"-text PONG
  AT_LEAST=2 scenario "$family"-tool 5 opencode "$family" gpt-sim read "{\"filePath\":\"$project/note.txt\"}"
  expect "$family"-tool "The answer is 42."
  # llama.cpp's responses events lack indices that this client reads: it fails the same way without a gateway.
  [ "$family$upstream" = responsesreal ] || LIMIT=1500 scenario "$family"-"$upstream" 5 opencode "$family" gpt-real Say PONG

  # A cut stream: some tries, an error, no loop without end.
  new_key "$family"-cut 5
  LIMIT=150 opencode "$family" gpt-cut Say one two three four five six seven eight nine ten > "$work/$family-cut.out" 2>&1 || true
  [ "$(requests)" -le 20 ] || { echo "$(requests) requests for a cut stream" >&2; exit 1; }
  echo "   $family-cut: $(requests) requests"
  books "$family"-cut 0
done

# Translated: the target speaks another family than the provider package.
for pair in chat:messages responses:chat responses:messages messages:chat messages:responses chat:responses; do
  family=${pair%:*} other=${pair#*:}
  scenario "$family"-on-$other 5 opencode "$family" on-$other-sim Say PONG
  expect "$family"-on-$other PONG
  AT_LEAST=2 scenario "$family"-tool-on-$other 5 opencode "$family" on-$other-sim read "{\"filePath\":\"$project/note.txt\"}"
  expect "$family"-tool-on-$other "The answer is 42."
  AT_LEAST=2 scenario "$family"-picture-on-$other 5 opencode "$family" on-$other-sim read "{\"filePath\":\"$project/dot.png\"}"
  expect "$family"-picture-on-$other "I see a PNG picture of 8 x 8 pixels."
  new_key "$family"-cut-on-$other 5
  LIMIT=150 opencode "$family" on-$other-cut Say one two three four five six seven eight nine ten > "$work/$family-cut-on-$other.out" 2>&1 || true
  [ "$(requests)" -le 20 ] || { echo "$(requests) requests for a cut stream" >&2; exit 1; }
  books "$family"-cut-on-$other 0
  [ "$upstream" = simulated ] || LIMIT=1500 scenario "$family"-real-on-$other 5 opencode "$family" on-$other-real Say PONG
done
