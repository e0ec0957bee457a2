# Droid: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family. Its package without
# its platform's has no program, and neither needs an account as long as it may not ask its maker (FACTORY_AIRGAP_ENABLED).

npm_install
droid=("$place/node_modules/@factory/cli-linux-x64/bin/droid" exec --auto low --output-format stream-json PROMPT)
scenario as-printed 5 as_printed gpt-sim droid "${droid[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt droid "${droid[@]/PROMPT/Say hello}"
TOOL="Read {\"file_path\": \"$project/note.txt\"}" MIDDLE=0.0155 program_at_limits droid "${droid[@]}"
