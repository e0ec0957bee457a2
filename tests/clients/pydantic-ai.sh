# Pydantic AI: what `farebox setup` prints, pasted, what it does in trouble, and its streams and tools on slugs of every family.

pip_install
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
at_limits "$place/bin/python" "$root/tests/clients/programs.py" pydantic-ai
