# The Kilo CLI: what `farebox setup` prints, pasted, and what it does in trouble. It adds its environment behind every prompt, which the
# simulated model repeats.

npm_install
kilo=(env KILO_DISABLE_AUTOUPDATE=1 KILO_DISABLE_MODELS_FETCH=1 "$place/node_modules/@kilocode/cli-linux-x64/bin/kilo" run --auto)
scenario as-printed 5 as_printed gpt-sim kilo "${kilo[@]}" "Say hello"
expect as-printed "You said:"
at_trouble gpt kilo "${kilo[@]}" "Say hello"
