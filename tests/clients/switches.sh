# The vendors' own libraries: every tool loop of every client family moves between every two of six models, forth and back, whole and
# streamed. With RESULTS=FILE the table is written there.

source "$root/tests/clients/strict.sh"
strict_vendors

# library NAME FAMILY: the loops of one library.
library() {
  client=$1
  local package version more place program file
  of_client "$1"
  case $1 in
    *-python) pip_install; program=$place/bin/python; file=$root/tests/clients/switches.py ;;
    # Modules are looked up from where a file stands.
    *-node) npm_install; program=node; file=$place/switches.mjs; cp "$root/tests/clients/switches.mjs" "$file" ;;
  esac
  env -i PATH="$PATH" HOME="$home" BASE="$base" KEY="$secret" timeout 900 "$program" "$file" "$2"
}

: > "$work/switches"
for pair in openai-python:chat openai-node:chat openai-python:responses openai-node:responses anthropic-python:messages anthropic-node:messages; do
  name=${pair/:/-}
  scenario "$name" 20 library "${pair%:*}" "${pair#*:}"
  grep -E '^(took|broke) ' "$work/$name.out" | sed "s/^/$name /" >> "$work/switches" || true
done
client=switches version=-
python3 "$root/tests/clients/table.py" "$work/switches" "$work/refused" "$root/tests/clients/versions" > "$work/table.md"
cat "$work/table.md"
if grep ' broke ' "$work/switches"; then exit 1; fi
only_seals_were_refused
[ -z "${RESULTS-}" ] || cp "$work/table.md" "$RESULTS"
