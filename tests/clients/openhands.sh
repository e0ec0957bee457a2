# OpenHands: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

python=python3.12 pip_install
openhands=(env OPENHANDS_SUPPRESS_BANNER=1 "$place/bin/openhands" --headless --json -t PROMPT)
scenario as-printed 5 as_printed gpt-sim openhands "${openhands[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt openhands "${openhands[@]/PROMPT/Say hello}"
TOOL='terminal {"command": "cat note.txt"}' MIDDLE=0.035 MIDDLE_SAYS="every word" program_at_limits openhands "${openhands[@]}"
