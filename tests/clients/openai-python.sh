# The OpenAI library for Python: models, chat, responses, tools and streams, on the simulated and the real provider.

pip_install

# What `farebox setup` prints, pasted.
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
at_limits "$place/bin/python" "$root/tests/clients/programs.py" openai
[ -z "${LATEST-}" ] || return 0

library() { # library SLUG
  env -i PATH="$PATH" HOME="$home" OPENAI_BASE_URL="$base/v1" OPENAI_API_KEY="$secret" SLUG="$1" PICTURE="$project/dot.png" \
    timeout 600 "$place/bin/python" "$root/tests/clients/openai_python.py"
}

slugs=(gpt-sim gpt-real on-messages-sim on-responses-sim)
[ "$upstream" = simulated ] || slugs+=(on-messages-real on-responses-real)
for slug in "${slugs[@]}"; do
  scenario "$slug" 5 library "$slug"
  expect "$slug" "done"
done
