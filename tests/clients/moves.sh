# Codex, Claude Code and opencode: one session each that moves between six models, with a call in every turn. The vendors are as strict
# as the published rules (vendors.py); the only refusals that may occur are those of another vendor's seal, which the gateway repeats.
# With UPSTREAM_URL the sessions move between the three families of the real server.

source "$root/tests/clients/strict.sh"
source "$root/tests/clients/sessions.sh"
# From every model to two others, so that each client moves between all families in both directions.
tour="chat-readable responses-sealed messages-sealed chat-sealed messages-readable responses-readable responses-sealed messages-sealed
  messages-readable chat-readable messages-sealed responses-readable chat-sealed responses-sealed chat-readable"
title="Real programs that move between models in one session"
[ "$upstream" = real ] || strict_vendors

# The real server cannot call: its sessions are text alone, and what it says is random and mostly ends at its limit, which clients
# call an error.
if [ "$upstream" = real ]; then
  tour="on-chat-real on-responses-real on-messages-real on-chat-real" LIMIT=600
  title="Real programs that move between families on a real server"
  say() { echo "Say PONG"; }
  sees="" cut="max_output_tokens|output token maximum"
  # opencode's responses package cannot read this server's responses, with or without a gateway (docs/customers.md).
  opencode_skips=on-responses-real
fi

sessions || { echo "a session broke" >&2; exit 1; }
recorded "$title"
[ "$upstream" = real ] || only_seals_were_refused
client=moves version=-
