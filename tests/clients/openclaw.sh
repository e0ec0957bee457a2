# OpenClaw: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family. With more
# tools than one it says behind every prompt what runs, and the simulated model reads only that; and after a refusal for money it leaves
# the provider alone for ten minutes, also in its next runs.

npm_install
# shellcheck disable=SC2016
fresh='find ~/.openclaw -mindepth 1 ! -name openclaw.json -delete; sed -i "\$s/}/, \"tools\": { \"allow\": [\"read\"] } }/" ~/.openclaw/openclaw.json'
openclaw=(sh -c "$fresh"'; exec "$0" agent exec "$1"' "$place/node_modules/.bin/openclaw" PROMPT)
scenario as-printed 5 as_printed gpt-sim openclaw "${openclaw[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt openclaw "${openclaw[@]/PROMPT/Say hello}"
LIMIT=120 TOOL='read {"path": "note.txt"}' program_at_limits openclaw "${openclaw[@]}"
