# vendors.py behind the gateway, as strict as the published rules: six models for conversations to move between, or every service.

# start_vendors: starts them, and the doubles of all services with them.
start_vendors() {
  local judge
  judge=$(dirname "$farebox")/examples/judge
  [ -x "$judge" ] || (cd "$root" && cargo build --quiet -p farebox-doubles --example judge)
  JUDGE=$judge python3 "$root/tests/clients/vendors.py" "$work/vendors.port" "$work/refused" 2> "$work/vendors.log" &
  recorder_pid=$!
  wait_for "the vendors" test -s "$work/vendors.port"
  touch "$work/refused"
}

# strict_vendors: starts them and publishes chat-readable … messages-sealed.
strict_vendors() {
  start_vendors
  local family kind thinking
  for family in chat responses messages; do
    printf '[provider.strict-%s]\nbase_url = "http://127.0.0.1:%s/v1"\nspeaks   = ["%s"]\nkey      = { env = "SIMULATED_KEY" }\n\n' \
      "$family" "$(cat "$work/vendors.port")" "$family" >> "$FAREBOX_ROUTES"
    for kind in readable sealed; do
      thinking=effort
      [ "$family" != messages ] || { thinking=budget; [ "$kind" = readable ] || thinking=adaptive; }
      publish "$family-$kind" "$family" "strict-$family" "$family-$kind" 32000 "abilities = { thinking = \"$thinking\", json_schema = true }"
    done
  done
  kill -HUP "$gateway_pid"
  new_key models 1
  wait_for "the new models" published messages-sealed
}

published() { curl -sf -H "authorization: Bearer $secret" "$base/v1/models" | grep -q "\"$1\""; }

# What vendors may refuse is another vendor's thinking: such a request is repeated, or the client would have stopped.
only_seals_were_refused() {
  local others="Invalid .signature. in .thinking. block|encrypted content could not be verified|^.* Item with id '.*' not found"
  if grep -vE "$others" "$work/refused"; then echo "a vendor refused what was sent" >&2; return 1; fi
}
