# Programs that live on stop strings, on slugs whose only target speaks responses, a family without them: talker.py says more than
# they should hear.

python3 "$root/tests/clients/talker.py" "$work/talker.port" "$work/left" &
recorder_pid=$!
wait_for "the talker" test -s "$work/talker.port"
printf '[provider.talker]\nbase_url = "http://127.0.0.1:%s/v1"\nspeaks   = ["responses"]\nkey      = { env = "SIMULATED_KEY" }\n\n' \
  "$(cat "$work/talker.port")" >> "$FAREBOX_ROUTES"
for program in smolagents griptape lm-eval; do publish "stops-$program" responses talker "$program" 32000; done
kill -HUP "$gateway_pid"
new_key models 1
wait_for "the new models" curl -sf -H "authorization: Bearer $secret" "$base/v1/models/stops-lm-eval" -o /dev/null

stopping() { # stopping PROGRAM STREAM
  local package version more place
  of_client "$1"
  pip_install
  env -i PATH="$PATH" HOME="$home" BASE="$base" KEY="$secret" SLUG="stops-$1" STREAM="$2" timeout 300 \
    "$place/bin/python" "$root/tests/clients/stopping.py" "$1"
}

for program in smolagents griptape lm-eval; do scenario "$program-whole" 5 stopping "$program" ""; expect "$program-whole" "done"; done
for program in smolagents griptape; do scenario "$program-streamed" 5 stopping "$program" 1; expect "$program-streamed" "done"; done
sort "$work/left" | uniq -c
client=stopping version=-
