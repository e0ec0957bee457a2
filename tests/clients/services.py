"""Appends every service to a catalog and routes, behind its strict double in vendors.py, and prints the slugs.

    services.py FAREBOX PORT CATALOG ROUTES FOLDER

A preset stands as `farebox init` writes it, but for its address, its key and its slug.
"""

import functools
import os
import re
import subprocess
import sys

farebox, port, catalog, routes, folder = sys.argv[1:]
# Those with a small context first, because the conversation grows.
PRESETS = ["vllm", "llama.cpp", "ollama", "openai", "anthropic", "openrouter", "gemini", "mistral", "groq"]
# What has no preset: the model, and what it can do. DeepSeek sees no pictures.
BY_HAND = {"azure": ("gpt-5.4-mini", 'sampling = "none", thinking = "effort", json_schema = true'),
           "deepseek": ("deepseek-v4-flash", 'thinking = "switch", reasoning_echo = "all", vision = false'),
           "xai": ("grok-4.3", 'thinking = "effort", json_schema = true')}


@functools.cache
def written(preset):
    """What `init` writes, without comments."""
    place = os.path.join(folder, preset)
    os.makedirs(place)
    files = {"FAREBOX_CATALOG": "catalog.toml", "FAREBOX_ROUTES": "routes.toml"}
    given = {**os.environ, **{name: os.path.join(place, file) for name, file in files.items()}}
    subprocess.run([farebox, "init", "--provider", preset], cwd=place, env=given, check=True, capture_output=True)
    texts = [open(os.path.join(place, file)).read() for file in files.values()]
    return [re.sub(r"^#.*\n", "", text, flags=re.M) for text in texts]


def placed(service):
    """A preset's files, with the double's address."""
    table, route = written(service)
    route = re.sub(r"^(base_url|key) .*\n", "", route, flags=re.M)
    return table, re.sub(r"^(kind .*\n)", rf"\1{home(service)}", route, flags=re.M)


def by_hand(service):
    """A chat service as an operator would configure it, sold under OpenAI's row."""
    model, able = BY_HAND[service]
    table = OPENAI.replace('"responses"', '"chat"')
    target = f'{{ provider = "{service}", model = "{model}", abilities = {{ {able} }} }}'
    # Azure is OpenAI's own wire.
    kind = 'kind = "openai"\n' if service == "azure" else ""
    route = f'[provider.{service}]\n{kind}{home(service)}speaks = ["chat"]\n\n[[route]]\nslug = "?"\ntargets = [ {target} ]\n'
    return table.replace('"vision", ', "") if "vision = false" in able else table, route


def home(service):
    return f'base_url = "http://127.0.0.1:{port}/{service}/v1"\nkey = {{ env = "SIMULATED_KEY" }}\n'


OPENAI = written("openai")[0]
with open(catalog, "a") as sold, open(routes, "a") as served:
    for service in [*PRESETS, *BY_HAND]:
        files = by_hand(service) if service in BY_HAND else placed(service)
        for file, text in zip((sold, served), files):
            file.write(re.sub(r"^slug .*$", f'slug = "at-{service}"', text, flags=re.M) + "\n")
        print(f"at-{service}")
