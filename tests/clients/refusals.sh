# Refusals that say what helps, and what the libraries make of it: the Anthropic tool runners go on without a thread by themselves;
# an item that is only referred to, and a limit that is too dear, are served once the remedies in the error are applied.

of_client anthropic-node; npm_install; anthropic_node=$place
of_client anthropic-python; pip_install; anthropic_python=$place
of_client openai-node; npm_install; openai_node=$place
of_client openai-python; pip_install; openai_python=$place
client=refusals version=libraries

node_in() { # node_in PLACE FILE
  cp "$root/tests/clients/$2" "$1/$2"
  env -i PATH="$PATH" HOME="$home" BASE="$base" KEY="$secret" timeout 60 node "$1/$2"
}

python_in() { # python_in PLACE FILE
  env -i PATH="$PATH" HOME="$home" BASE="$base" KEY="$secret" timeout 60 "$1/bin/python" "$root/tests/clients/$2"
}

AT_LEAST=2 scenario thread-node 5 node_in "$anthropic_node" refused_thread.mjs
expect thread-node "went on without a thread"
AT_LEAST=2 scenario thread-python 5 python_in "$anthropic_python" refused_thread.py
expect thread-python "went on without a thread"

scenario reference-node 5 node_in "$openai_node" refused_openai.mjs
expect reference-node "served with the remedy"
scenario reference-python 0.05 python_in "$openai_python" refused_openai.py
expect reference-python "served with the remedy"
