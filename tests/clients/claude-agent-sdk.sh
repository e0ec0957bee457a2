# The Claude Agent SDK: what `farebox setup` prints, pasted, and what it does in trouble.

pip_install
scenario as-printed 5 as_printed claude-sim
expect as-printed hello
at_trouble claude
