# Hermes: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

pip_install
hermes=("$place/bin/hermes" chat -Q --yolo -q PROMPT)
scenario as-printed 5 as_printed gpt-sim hermes "${hermes[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt hermes "${hermes[@]/PROMPT/Say hello}"
TOOL='terminal {"command": "cat note.txt"}' program_at_limits hermes "${hermes[@]}"
