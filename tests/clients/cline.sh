# The Cline CLI: what `farebox setup` prints, pasted, and what it does in trouble. `cline` is started twice: to sign in and to ask.

npm_install
cline_bin=$place/node_modules/@cline/cli-linux-x64/bin/cline
cline=(sh -c "[ \"\$1\" = auth ] && exec $cline_bin \"\$@\"; exec $cline_bin 'PROMPT'" cline)
scenario as-printed 5 as_printed gpt-sim cline "${cline[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt cline "${cline[@]/PROMPT/Say hello}"
TOOL='read_files {"files": [{"path": "note.txt"}]}' program_at_limits cline "${cline[@]}"
# It leaves a daemon behind.
pgrep -f -- "--cwd $project" | xargs -r kill || true
