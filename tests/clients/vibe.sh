# Mistral Vibe: what `farebox setup` prints, pasted, and what it does in trouble.

python=python3.12 pip_install
vibe=("$place/bin/vibe" --trust --agent auto-approve -p "Say hello")
scenario as-printed 5 as_printed gpt-sim vibe "${vibe[@]}"
expect as-printed hello
at_trouble gpt vibe "${vibe[@]}"
