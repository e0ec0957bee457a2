# Nanocoder: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

npm_install
# Its own words come before `run`, what it is asked behind that.
nanocoder=(bash -c 'exec "$0" --plain --trust-directory --mode yolo "${@:2}" run "$1"' "$place/node_modules/.bin/nanocoder" PROMPT)
scenario as-printed 5 as_printed gpt-sim nanocoder "${nanocoder[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt nanocoder "${nanocoder[@]/PROMPT/Say hello}"
TOOL='read_file {"path": "note.txt"}' program_at_limits nanocoder "${nanocoder[@]}"
