# The GitHub Copilot CLI: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
copilot=("$place/node_modules/@github/copilot-linux-x64/copilot" --no-auto-update -p "Say hello")
scenario as-printed 5 as_printed gpt-sim copilot "${copilot[@]}"
expect as-printed hello
at_trouble gpt copilot "${copilot[@]}"
