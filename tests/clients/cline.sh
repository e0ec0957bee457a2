# The Cline CLI: what `farebox setup` prints, pasted, and what it does in trouble. `cline` is started twice: to sign in and to ask.

npm_install
cline_bin=$place/node_modules/@cline/cli-linux-x64/bin/cline
cline=(sh -c "[ \"\$1\" = auth ] && exec $cline_bin \"\$@\"; exec $cline_bin 'Say hello'" cline)
scenario as-printed 5 as_printed gpt-sim cline "${cline[@]}"
expect as-printed hello
at_trouble gpt cline "${cline[@]}"
