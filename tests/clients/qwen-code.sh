# Qwen Code: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
qwen=("$place/node_modules/.bin/qwen" -p "Say hello")
scenario as-printed 5 as_printed gpt-sim qwen "${qwen[@]}"
expect as-printed hello
at_trouble gpt qwen "${qwen[@]}"
