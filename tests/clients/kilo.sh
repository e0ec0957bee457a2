# The Kilo CLI: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family. It adds
# its environment behind every prompt, and the simulated model reads only that; so the name of the folder says what is asked, and a call reads the file
# `simulated`, which is what that model fills in.

npm_install
kilo=(env KILO_DISABLE_AUTOUPDATE=1 KILO_DISABLE_MODELS_FETCH=1 "$place/node_modules/@kilocode/cli-linux-x64/bin/kilo" run --auto)
scenario as-printed 5 as_printed gpt-sim kilo "${kilo[@]}" "Say hello"
expect as-printed "You said:"
at_trouble gpt kilo "${kilo[@]}" "Say hello"
# shellcheck disable=SC2016
in_folder=(sh -c 'mkdir -p "../$0" && cp -r . "../$0" && cd "../$0" && cp note.txt simulated && exec "$@"' PROMPT)
TOOL="please read" program_at_limits kilo "${in_folder[@]}" "${kilo[@]}" "As the folder says"
