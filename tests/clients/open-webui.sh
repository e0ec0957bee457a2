# Open WebUI: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family. Its page is
# a browser's; open_webui.py asks its server what the page asks.

open_webui_install
webui_port=$(free_port)
webui=(env WEBUI_PORT="$webui_port" DATA_DIR="$work/webui" "$place/bin/python" "$root/tests/clients/open_webui.py" "$place/bin/open-webui")
scenario as-printed 5 as_printed gpt-sim open-webui "${webui[@]}"
expect as-printed hello
at_trouble gpt open-webui "${webui[@]}"
at_limits "${webui[@]}"
