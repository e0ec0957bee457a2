# LLM: what `farebox setup` prints, pasted, and what it does in trouble.

pip_install
scenario as-printed 5 as_printed gpt-sim llm "$place/bin/llm"
expect as-printed hello
at_trouble gpt llm "$place/bin/llm"
