# The libraries of a model router, Python and JavaScript, on slugs of their own family, and on translated ones that speak only
# responses or only messages.

python=$prefix/router-python-1.3.84
node=$prefix/router-node-1.3.19
[ -f "$python/.done" ] || { python3 -m venv "$python" && "$python/bin/pip" install -q openrouter==1.3.84 && touch "$python/.done"; }
[ -f "$node/.done" ] || { npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$node" @openrouter/sdk@1.3.19 && touch "$node/.done"; }
slugs=(on-chat-sim on-responses-sim on-messages-sim)
python() { "$python/bin/python" "$root/tests/clients/routers.py" "$base" "$secret" "${slugs[@]}"; }
javascript() { node "$root/tests/clients/routers.mjs" "$node" "$base" "$secret" "${slugs[@]}"; }
scenario python 5 python
scenario node 5 javascript
client=routers version=-
