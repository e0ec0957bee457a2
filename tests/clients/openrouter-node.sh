# The OpenRouter SDK for Node: what `farebox setup` prints, pasted, what it does in trouble, and its streams and tools on slugs of
# every family.

npm_install
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
cp "$root/tests/clients/programs.mjs" "$place/"
# It refuses chunks that say `usage: null`, as those of its own family do until the last.
SLUGS="on-responses on-messages" at_limits node "$place/programs.mjs" openrouter
