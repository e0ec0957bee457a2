# pi: what `farebox setup` prints, pasted, and what it does in trouble.

npm_install
pi() { # pi SLUG
  pi_command=("$place/node_modules/.bin/pi" --provider farebox --model "$1" -p "Say hello")
}
pi gpt-sim
scenario as-printed 5 as_printed gpt-sim pi "${pi_command[@]}"
expect as-printed hello
trouble empty 0 gpt-sim pi "${pi_command[@]}"
pi gpt-busy; trouble busy 5 gpt-busy pi "${pi_command[@]}"
pi gpt-cut; trouble cut 5 gpt-cut pi "${pi_command[@]}"
