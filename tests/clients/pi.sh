# pi: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

npm_install
pi=("$place/node_modules/.bin/pi" -p PROMPT)
scenario as-printed 5 as_printed gpt-sim pi "${pi[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt pi "${pi[@]/PROMPT/Say hello}"
TOOL='read {"path": "note.txt"}' program_at_limits pi "${pi[@]}"
