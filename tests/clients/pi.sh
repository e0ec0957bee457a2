# pi: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
pi=("$place/node_modules/.bin/pi" -p "Say hello")
scenario as-printed 5 as_printed gpt-sim pi "${pi[@]}"
expect as-printed hello
at_trouble gpt pi "${pi[@]}"
