# Codex, Claude Code and opencode on the strict double of every service: one session each that moves from service to service, with a
# call in every turn. Each service is configured as `farebox init` writes it; those without a preset as services.py does.

source "$root/tests/clients/strict.sh"
source "$root/tests/clients/sessions.sh"
start_vendors
tour=$(python3 "$root/tests/clients/services.py" "$farebox" "$(cat "$work/vendors.port")" "$FAREBOX_CATALOG" "$FAREBOX_ROUTES" "$work/init")
kill -HUP "$gateway_pid"
new_key models 1
for slug in $tour; do wait_for "$slug" published "$slug"; done

broken=0
sessions || broken=1
recorded "Real programs on the strict double of every service"
only_seals_were_refused || broken=1
[ "$broken" = 0 ] || exit 1
client=services version=-
