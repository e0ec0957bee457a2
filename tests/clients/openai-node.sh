# The OpenAI library for Node: chat, responses, tools and streams, on the simulated and the real provider.

npm_install

# What `farebox setup` prints, pasted.
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
cp "$root/tests/clients/programs.mjs" "$place/"
at_limits node "$place/programs.mjs" openai
[ -z "${LATEST-}" ] || return 0
# Modules are looked up from where a file stands.
cp "$root/tests/clients/openai_node.mjs" "$place/openai_node.mjs"

library() { # library SLUG
  env -i PATH="$PATH" HOME="$home" OPENAI_BASE_URL="$base/v1" OPENAI_API_KEY="$secret" SLUG="$1" \
    timeout 600 node "$place/openai_node.mjs"
}

for slug in gpt-sim gpt-real; do
  scenario "$slug" 5 library "$slug"
  expect "$slug" "done"
done
