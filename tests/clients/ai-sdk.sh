# The AI SDK: what `farebox setup` prints, pasted, what it does in trouble, and its streams and tools on slugs of every family, by chat and
# by its default provider, which speaks responses.

npm_install
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
cp "$root/tests/clients/programs.mjs" "$place/"
at_limits node "$place/programs.mjs" ai-sdk
# Its later turns name what was answered before instead of sending it.
TITLE="ai-sdk, default provider" CASES=${CASES-plain stream tool turns empty middle cap} at_limits node "$place/programs.mjs" ai-sdk-responses
