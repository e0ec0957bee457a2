# gptme: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

pip_install
gptme=(env PYTHONUNBUFFERED=1 "$place/bin/gptme" --non-interactive --tool-format tool PROMPT)
scenario as-printed 5 as_printed gpt-sim gptme "${gptme[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt gptme "${gptme[@]/PROMPT/Say hello}"
TOOL='shell {"command": "cat note.txt"}' MIDDLE=0.035 program_at_limits gptme "${gptme[@]}"
