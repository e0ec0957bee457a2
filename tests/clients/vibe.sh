# Mistral Vibe: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

python=python3.12 pip_install
vibe=("$place/bin/vibe" --trust --agent auto-approve -p PROMPT)
scenario as-printed 5 as_printed gpt-sim vibe "${vibe[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt vibe "${vibe[@]/PROMPT/Say hello}"
TOOL='bash {"command": "cat note.txt"}' MIDDLE=0.03 program_at_limits vibe "${vibe[@]}"
