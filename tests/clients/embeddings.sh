# Embeddings, by the libraries that ask for them and by Open WebUI, which uploads a document and searches it. The recorder writes down what
# was counted by whoever made the vectors: the simulated provider, or the server at $UPSTREAM_URL (llama.cpp's with `--embeddings`).

slug=text-embedding-3-small

sells() { # sells BASE KEY: whether the gateway there publishes the slug already
  curl -sf -H "authorization: Bearer $2" "$1/v1/models/$slug" -o /dev/null
}

vectors() { # vectors FOLDER PROVIDER MODEL: publishes the slug there
  cat >> "$1/catalog.toml" <<TOML
[[model]]
model             = "Vectors"
slug              = "$slug"
provider          = "Tests"
best_path         = "embeddings"
best_environments = ["tests"]
price             = { input = "1.37", per_request = "0.000007" }
capabilities      = ["embeddings"]
limits            = { context = 8_192 }

TOML
  printf '[[route]]\nslug    = "%s"\ntargets = [ { provider = "%s", model = "%s" } ]\n\n' "$slug" "$2" "$3" >> "$1/routes.toml"
}

key=UPSTREAM_KEY
if [ "$upstream" = simulated ]; then
  vectors "$work/upstream" sim sim
  kill -HUP "$upstream_pid"
  wait_for "the model behind the gateway" sells "http://127.0.0.1:$upstream_port" "$upstream_key"
  UPSTREAM_URL=http://127.0.0.1:$upstream_port/v1 start_recorder "$upstream_key"
  upstream=simulated key=SIMULATED_KEY
fi
printf '[provider.real-vectors]\nbase_url = "http://127.0.0.1:%s/v1"\nspeaks   = ["embeddings"]\nkey      = { env = "%s" }\n\n' \
  "$(cat "$work/recorder.port")" "$key" >> "$FAREBOX_ROUTES"
vectors "$work" real-vectors "$slug"
kill -HUP "$gateway_pid"
new_key models 1
wait_for "the model" sells "$base" "$secret"

# library NAME: what people do with it. The random model of a real server knows neither the libraries' tokens nor a number of dimensions.
library() {
  client=$1
  local package version more place program file
  of_client "$1"
  case $1 in
    # Modules are looked up from where a file stands.
    openai-node) npm_install; program=node; file=$place/embeddings.mjs; cp "$root/tests/clients/embeddings.mjs" "$file" ;;
    *) pip_install; program=$place/bin/python; file=$root/tests/clients/embeddings.py ;;
  esac
  echo "$client $version"
  env -i PATH="$PATH" HOME="$home" BASE="$base" KEY="$secret" SLUG="$slug" SIMULATED="${simulated-}" TIKTOKEN_CACHE_DIR="$vocabularies" \
    timeout 300 "$program" "$file" "$client"
}

simulated=
[ "$upstream" = real ] || simulated=1
# LlamaIndex carries the files of tokens that LangChain would fetch.
vocabularies=$(client=llama-index; of_client llama-index; pip_install; echo "$place"/lib/python*/site-packages/llama_index/core/_static/tiktoken_cache)
for name in openai-python openai-node langchain llama-index; do
  AT_LEAST=4 scenario "$name" 5 library "$name"
  expect "$name" "done"
done

webui() { # webui: with the settings of its documents' page
  client=open-webui
  local package version more place
  of_client open-webui
  open_webui_install
  echo "$client $version"
  env -i PATH="$PATH" HOME="$home" "${quiet[@]}" BASE="$base" KEY="$secret" SLUG="$slug" CASE=documents WEBUI_PORT="$(free_port)" \
    DATA_DIR="$work/webui" timeout 300 "$place/bin/python" "$root/tests/clients/open_webui.py" "$place/bin/open-webui"
}
AT_LEAST=2 scenario open-webui 5 webui
expect open-webui "the cellar"
head -qn 1 "$work"/{openai-python,openai-node,langchain,llama-index,open-webui}.out | sed 's/^/   /'
client=embeddings version=-
