# The cases that a program meets: a plain question, a tool, no money, money that ends in the middle, a stream that breaks or a cap that is
# used up; what a person reads in each, and a row of `latest`'s table.

# at_limits COMMAND…: a library's program, which reads BASE, KEY, SLUG and CASE. On a slug of its own family and on slugs whose only
# target speaks responses or messages: a whole answer, a stream, a tool, an empty key, one that is empty in the middle of the answer, and
# a stream that breaks. SLUGS, and EMPTY and MIDDLE_SAYS, what it says where the money is out, are for programs that are different. With
# LATEST, only on OWN, a slug of its own family, and a cap that is used up in the place of the stream that breaks.
at_limits() {
  # Enough for the prompt and some of the 3,000 words.
  MIDDLE=${MIDDLE-0.022} cases asked "plain stream tool empty middle" "$@"
}

asked() { # asked SLUG CASE COMMAND…
  env -i PATH="$PATH" HOME="$home" "${quiet[@]}" BASE="$base" KEY="$secret" SLUG="$1" CASE="$2" timeout "${LIMIT-60}" "${@:3}"
}

# program_at_limits PROGRAM COMMAND…: the same for a program that is started as `farebox setup` prints; it streams or not, as it does by
# itself. In COMMAND the word PROMPT is what it is asked. TOOL makes it read note.txt; MIDDLE, in USD, pays for its prompt and some of
# 50,000 words.
program_at_limits() {
  RESULT="The answer is 42." MIDDLE=${MIDDLE-0.15} cases started "plain tool empty middle" "$@"
}

started() { # started SLUG CASE PROGRAM COMMAND…
  local prompt="Say hello"
  case $2 in
    tool) prompt=$TOOL ;;
    middle) prompt="Tell me 50000 words" ;;
    broken) prompt="Tell me 50 words" ;;
  esac
  set -- "$1" "${@:3}"
  LIMIT=${LIMIT-60} as_printed "${@//PROMPT/$prompt}"
}

# cases RUN CASES COMMAND…: each case with a key of its own, on each slug. Two more, for CASES, are `length` and `error`: a key that is empty
# in the middle, and the gateway is told that the program is another, for which money ends an answer by its length, or by an error.
cases() {
  local run=$1 all=$2 own=${OWN-gpt} slug name case usd of ended; shift 2
  local -A did=()
  [ -n "${LATEST-}" ] && SLUGS=$own all+=" cap" || all+=" broken"
  for slug in ${SLUGS-$own on-responses on-messages}; do
    for case in ${CASES-$all}; do
      name=$case-$slug usd=5 of=$slug-sim ended=0
      case $case in
        empty) usd=0 ;;
        middle | length | error) usd=$MIDDLE ;;
        broken) of=$slug-cut ;;
      esac
      new_key "$name" "$usd"
      case $case in
        cap) "$farebox" caps set "$key_id" day 0.000001 > /dev/null; "$run" "$of" empty "$@" ;;
        length) renamed somebody "$run" "$of" middle "$@" ;;
        error) renamed codex "$run" "$of" middle "$@" ;;
        *) "$run" "$of" "$case" "$@" ;;
      esac > "$work/$name.out" 2>&1 || ended=$?
      # What `timeout` ended may be under way at the gateway.
      wait_for "the end of $name" settled
      told "$name" "$case" "$ended"
      echo "   $name: $told"
      did[$case]=$told
      books "$name" 0
    done
  done
  if plain_log | grep "status=401" >&2; then return 1; fi
  row="| ${TITLE-$client} | $version |"
  for case in ${TABLE-}; do row+=" ${did[$case]-–} |"; done
  [ -z "${TABLE-}" ] || echo "$row" >> "$ROWS"
}

settled() { [ "$("$farebox" keys show "$key_id" --json | field held)" = 0.00 ]; }

# told NAME CASE ENDED: what the program printed is what a person needs to read in this case. Sets `told`.
told() {
  told="$(requests) requests"
  [ "$told" != "1 requests" ] || told="1 request"
  case $2 in
    plain | stream) expect "$1" hello ;;
    tool) expect "$1" "${RESULT-sunny}" ;;
    broken) ;;
    empty | cap | middle | length | error)
      local paid text=""
      paid=$(plain_log | grep "key=$key_id.*family=" | grep -c "charge=0\.0*[1-9]" || true)
      # Who asks again and again prints nothing until it ends, and `timeout` ends it; how long, the figures of `at_trouble` say.
      if [ "$3" = 124 ] && ! prints "$1" "$why"; then told+=", not told"; return; fi
      prints "$1" "costs real tokens" && text="the text"
      prints "$1" "$why" && text+=${text:+", "}why
      [ "$paid" -lt 2 ] || told+=", $paid paid"
      told+=": ${text:-nothing}"
      # Only a stream ends with words of ours; a whole answer ends at the limit that the money buys.
      case $2 in
        empty) expect "$1" "${EMPTY-out of balance}" ;;
        middle) [ -n "${LATEST-}" ] || expect "$1" "${MIDDLE_SAYS-out of balance}" ;;
      esac
      [ "$2 ${text:-nothing}" != "middle nothing" ] || { echo "  $1: $paid answers were paid, and nothing was said" >&2; return 1; }
      ;;
    # A library's own case says itself whether it is well.
    *) [ "$3" = 0 ] || { tail -3 "$work/$1.out" >&2; return 1; } ;;
  esac
}

# The words of a refusal for money, ours or those that a program has in their place.
why="out of balance|quota|cap reached"

prints() { tr -s '[:space:]' ' ' < "$work/$1.out" | grep -qiE -- "$2"; }

# renamed USER_AGENT COMMAND…: the gateway is told that another program asks.
renamed() {
  local base=$base agent=$1; shift
  python3 "$root/tests/clients/rename.py" "$base" "$agent" > "$work/renamer.port" &
  renamer_pid=$!
  wait_for "the renamer" test -s "$work/renamer.port"
  base=http://127.0.0.1:$(cat "$work/renamer.port")
  local ended=0
  "$@" || ended=$?
  kill "$renamer_pid"
  return "$ended"
}
