# nanobot: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

pip_install
# The printed command has the word `agent` already.
nanobot=(sh -c 'exec "$0" agent --no-markdown -w . -s "$$" -m "$1"' "$place/bin/nanobot" PROMPT)
scenario as-printed 5 as_printed gpt-sim nanobot "${nanobot[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt nanobot "${nanobot[@]/PROMPT/Say hello}"
EMPTY="out of quota" TOOL='read_file {"path": "note.txt"}' program_at_limits nanobot "${nanobot[@]}"
