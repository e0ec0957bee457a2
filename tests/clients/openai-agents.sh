# The OpenAI Agents SDK: what `farebox setup` prints, pasted, what it does in trouble, and an agent on a target of another family.

pip_install
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
at_limits "$place/bin/python" "$root/tests/clients/programs.py" openai-agents
# Its own tools run on the client's side, whatever family the target speaks.
OWN="on-chat on-messages" TITLE="openai-agents, own tools" CASES=${CASES-shell patch computer} \
  at_limits "$place/bin/python" "$root/tests/clients/programs.py" openai-agents-own-tools
[ -z "${LATEST-}" ] || return 0

agent() { # agent SLUG [QUESTION]
  env -i PATH="$PATH" HOME="$home" OPENAI_BASE_URL="$base/v1" OPENAI_API_KEY="$secret" SLUG="$1" PICTURE="$project/dot.png" \
    timeout "${LIMIT-120}" "$place/bin/python" "$root/tests/clients/openai_agents.py" "${@:2}"
}

for family in messages; do
  AT_LEAST=14 scenario agent-on-$family 5 agent on-$family-sim
  expect agent-on-$family "done"
  ends_well $family 6 agent SLUG "Say one two three four five six seven eight nine ten"
  expect empty-on-$family "out of balance"
  [ "$upstream" = simulated ] || LIMIT=900 scenario real-on-$family 5 agent on-$family-real "Say PONG"
done
