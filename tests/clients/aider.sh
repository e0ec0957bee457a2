# aider: chat streams without stream_options, on the simulated and the real provider.

pip_install

# What `farebox setup` prints, pasted.
aider=("$place/bin/aider" --message PROMPT --yes-always --no-check-update --no-show-model-warnings --no-auto-commits --no-analytics
  --no-show-release-notes --no-gitignore --edit-format ask --no-detect-urls)
scenario as-printed 5 as_printed gpt-sim aider "${aider[@]/PROMPT/Say hello}"
expect as-printed hello
at_trouble gpt aider "${aider[@]/PROMPT/Say hello}"
# It has no tools.
TOOL="Say The answer is 42." program_at_limits aider "${aider[@]}"
[ -z "${LATEST-}" ] || return 0

aider() { # aider SLUG MESSAGE
  (cd "$project" && env -i PATH="$PATH" HOME="$home" TERM=dumb OPENAI_API_BASE="$base/v1" OPENAI_API_KEY="$secret" LITELLM_LOCAL_MODEL_COST_MAP=True \
    timeout "${LIMIT-120}" "$place/bin/aider" --model "openai/$1" --message "$2" --yes-always --no-check-update --no-show-model-warnings \
    --no-auto-commits --no-analytics --no-show-release-notes --map-tokens 0 --edit-format ask --no-detect-urls --no-gitignore < /dev/null)
}

scenario chat-text 5 aider gpt-sim "Say PONG"
expect chat-text PONG
LIMIT=900 scenario chat-"$upstream" 5 aider gpt-real "Say PONG"
