# Claude Code behind Claude Code Router: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of
# every family. The router's own service stays in the background with the first key, so each run ends the one before.

npm_install
mkdir -p "$work/bin"
ln -s "$place/node_modules/@anthropic-ai/claude-code-linux-x64/claude" "$work/bin/claude"
ccr=$place/node_modules/.bin/ccr
router=(sh -c 'node $0 stop > /dev/null 2>&1; node $0 "$2" -p "$1" --allowedTools Read; node $0 stop' "$ccr" PROMPT)
scenario as-printed 5 as_printed claude-sim ccr "${router[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble claude ccr "${router[@]/PROMPT/Say hello}"
TOOL="Read {\"file_path\": \"$project/note.txt\"}" MIDDLE=0.035 SLUGS="claude on-chat on-responses" program_at_limits ccr "${router[@]}"
env HOME="$home" node "$ccr" stop > /dev/null 2>&1 || true
