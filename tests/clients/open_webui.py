"""Starts Open WebUI as its arguments say, asks it one question as its page does, prints what a person would read, and stops it.

Run by `farebox setup`'s text, with OPENAI_API_BASE_URL, OPENAI_API_KEY and DEFAULT_MODELS, or with BASE, KEY, SLUG and CASE as programs.py.
In the case `documents` SLUG makes vectors: a document is uploaded and searched.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

case = os.environ.get("CASE", "stream")
port = os.environ["WEBUI_PORT"]
data = pathlib.Path(os.environ["DATA_DIR"])
shutil.rmtree(data, ignore_errors=True)
data.mkdir(parents=True)
own = {"WEBUI_AUTH": "False", "OFFLINE_MODE": "True", "ENABLE_OLLAMA_API": "False", "RAG_EMBEDDING_ENGINE": "openai", "AUDIO_STT_ENGINE": "openai"}
if "BASE" in os.environ:
    own |= {"OPENAI_API_BASE_URL": os.environ["BASE"] + "/v1", "OPENAI_API_KEY": os.environ["KEY"]}
if case == "documents":
    own |= {"RAG_OPENAI_API_BASE_URL": os.environ["BASE"] + "/v1", "RAG_OPENAI_API_KEY": os.environ["KEY"],
            "RAG_EMBEDDING_MODEL": os.environ["SLUG"], "RAG_EMBEDDING_BATCH_SIZE": "3", "CHUNK_SIZE": "400", "CHUNK_OVERLAP": "40"}
log = open(data / "log", "w")
command = [sys.argv[1], "serve", "--host", "127.0.0.1", "--port", port]
server = subprocess.Popen(command, cwd=data, env=os.environ | own, stdout=log, stderr=log)


def ask(path, body=None, token=None, kind="application/json"):
    headers = {"Content-Type": kind}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    return urllib.request.urlopen(request, timeout=300)


def until_ready():
    for _ in range(600):
        try:
            return ask("/health").read()
        except OSError:
            time.sleep(0.2)
    sys.exit(f"Open WebUI did not start; see {data}/log")


def text(messages, token, streams):
    """The text of one answer and its calls."""
    weather = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    body = {"model": slug, "messages": messages, "stream": streams}
    if case == "tool":
        body["tools"] = [{"type": "function", "function": weather}]
    answer = ask("/api/chat/completions", body, token)
    if not streams:
        message = json.load(answer)["choices"][0]["message"]
        return message["content"], message.get("tool_calls")
    said = ""
    for line in answer:
        if line.startswith(b"data: {"):
            chunk = json.loads(line[6:])
            said += "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", []))
            said += json.dumps(chunk["error"]) if "error" in chunk else ""
    return said, None


def found(token):
    """What a search finds in a document of several pieces."""
    words = "".join(f"Room {room}: nothing but dust, old paper and a chair. " * 20 + "\n\n" for room in range(8))
    document = f'--cut\r\nContent-Disposition: form-data; name="file"; filename="rooms.txt"\r\n\r\n{words}The key is in the cellar.\r\n--cut--\r\n'
    uploaded = json.load(ask("/api/v1/files/?process_in_background=false", document.encode(), token, "multipart/form-data; boundary=cut"))
    query = {"collection_names": [f"file-{uploaded['id']}"], "query": "Where is the key?", "k": 100}
    return json.load(ask("/api/v1/retrieval/query/collection", query, token))["documents"]


try:
    until_ready()
    token = json.load(ask("/api/v1/auths/signin", {"email": "", "password": ""}))["token"]
    if case == "documents":
        print(found(token))
        sys.exit()
    models = [model["id"] for model in json.load(ask("/api/models", token=token))["data"]]
    slug = os.environ.get("SLUG") or os.environ["DEFAULT_MODELS"]
    assert slug in models, models
    prompt = {"tool": 'weather {"city": "Bonn"}', "middle": "Write 3000 words", "broken": "Write 50 words"}.get(case, "Say hello")
    messages = [{"role": "user", "content": prompt}]
    said, calls = text(messages, token, case not in ("plain", "tool"))
    if calls:
        messages += [{"role": "assistant", "content": said, "tool_calls": calls},
                     {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sunny in Bonn"}]
        said, _ = text(messages, token, False)
    print(said)
except urllib.error.HTTPError as refused:
    print(refused.code, refused.read().decode())
    sys.exit(1)
finally:
    server.terminate()
    server.wait()
