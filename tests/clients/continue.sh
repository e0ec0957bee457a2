# The Continue CLI: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
cn=("$place/node_modules/.bin/cn" -p "Say hello")
scenario as-printed 5 as_printed gpt-sim cn "${cn[@]}"
expect as-printed hello
at_trouble gpt cn "${cn[@]}"
