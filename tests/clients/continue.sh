# The Continue CLI: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
cn=("$place/node_modules/.bin/cn" --config "$home/.continue/config.yaml" -p "Say hello")
export CONTINUE_TELEMETRY_ENABLED=0
scenario as-printed 5 as_printed gpt-sim cn "${cn[@]}"
expect as-printed hello
at_trouble gpt cn "${cn[@]}"
