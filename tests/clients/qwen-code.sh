# Qwen Code: what `farebox setup` prints, pasted, and how long it tries at an empty balance.

npm_install
qwen=("$place/node_modules/.bin/qwen" --auth-type openai -p "Say hello")
scenario as-printed 5 as_printed gpt-sim qwen "${qwen[@]}"
expect as-printed hello
trouble empty 0 gpt-sim qwen "${qwen[@]}"
