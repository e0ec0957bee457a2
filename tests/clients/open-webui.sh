# Open WebUI: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family. Its page is
# a browser's; open_webui.py asks its server what the page asks. Without torch, which only documents need, it is a tenth of the size.

[ -f "$place/.done" ] || {
  python3.12 -m venv "$place" && "$place/bin/pip" install -q uv
  printf "%s; sys_platform == 'never'\n" torch transformers sentence-transformers > "$place/without.txt"
  "$place/bin/uv" pip install -q --python "$place/bin/python" --override "$place/without.txt" "$package==$version" && touch "$place/.done"
}
webui_port=$(free_port)
webui=(env WEBUI_PORT="$webui_port" DATA_DIR="$work/webui" "$place/bin/python" "$root/tests/clients/open_webui.py" "$place/bin/open-webui")
scenario as-printed 5 as_printed gpt-sim open-webui "${webui[@]}"
expect as-printed hello
at_trouble gpt open-webui "${webui[@]}"
at_limits "${webui[@]}"
