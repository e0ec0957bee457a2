#!/usr/bin/env python3
"""Asks a gateway in all families at targets of all families, whole and streamed, over TLS: load for deploy/build --optimised, not a measurement.

FAREBOX=target/dist/farebox bench/families.py [ROUNDS] starts a gateway on a new ledger in TMPDIR and a provider whose streams have
60 chunks. A round is 18 requests. It needs openssl; for the rest the standard library suffices.
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from subject import CATALOG, whole

FAREBOX = os.path.abspath(os.environ.get("FAREBOX", "target/dist/farebox"))
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
FAMILIES = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/native/v1/messages"}
WORDS = [f"word {number} " for number in range(60)]
TEXT = "".join(WORDS)


def chat(stream):
    head = {"id": "chatcmpl-1", "created": 1, "model": "bench-1"}
    usage = {"prompt_tokens": 900, "completion_tokens": 180, "total_tokens": 1080}
    if not stream:
        message = {"role": "assistant", "content": TEXT}
        return {**head, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    head["object"] = "chat.completion.chunk"
    chunk = lambda delta, reason: {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None}
    chunks = [chunk({"role": "assistant", "content": ""}, None), *(chunk({"content": word}, None) for word in WORDS), chunk({}, "stop")]
    return [(None, one) for one in [*chunks, {**head, "choices": [], "usage": usage}]] + [(None, "[DONE]")]


def messages(stream):
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench-1"}
    if not stream:
        usage = {"input_tokens": 900, "output_tokens": 180}
        return {**head, "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    start = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 900, "output_tokens": 1}}
    events = [{"type": "message_start", "message": start}]
    events.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    events += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS]
    events.append({"type": "content_block_stop", "index": 0})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 180}})
    return [(event["type"], event) for event in [*events, {"type": "message_stop"}]]


def responses(stream):
    part = lambda text: {"type": "output_text", "text": text, "annotations": []}
    item = lambda status, parts: {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": parts}
    usage = {"input_tokens": 900, "output_tokens": 180, "total_tokens": 1080}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "bench-1", "error": None, "incomplete_details": None}
    finished = {**head, "status": "completed", "output": [item("completed", [part(TEXT)])], "usage": usage}
    if not stream:
        return finished
    events = [{"type": "response.created", "response": {**head, "status": "in_progress", "output": [], "usage": None}}]
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events.append({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", [])})
    events.append({"type": "response.content_part.added", **place, "part": part("")})
    events += [{"type": "response.output_text.delta", **place, "delta": word} for word in WORDS]
    events.append({"type": "response.output_text.done", **place, "text": TEXT})
    events.append({"type": "response.content_part.done", **place, "part": part(TEXT)})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item("completed", [part(TEXT)])})
    events.append({"type": "response.completed", "response": finished})
    return [(event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)]


def answer(path, stream):
    family = {"completions": chat, "messages": messages, "responses": responses}[path.rsplit("/", 1)[-1].split("?")[0]]
    said = family(stream)
    if not stream:
        return whole(said)
    text = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    for name, event in said:
        frame = (f"event: {name}\n" if name else "") + f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
        text += f"{len(frame):x}\r\n{frame}\r\n"
    return (text + "0\r\n\r\n").encode()


def request(family, slug, stream):
    turns = [{"role": "user", "content": "and the next line " * 60}, {"role": "assistant", "content": "a line " * 60}] * 3
    turns.append({"role": "user", "content": "go on"})
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    function = {"name": "read_file", "description": "Reads a file."}
    body = {"model": slug, "stream": stream}
    if family == "chat":
        body |= {"messages": turns, "tools": [{"type": "function", "function": {**function, "parameters": schema}}], "max_tokens": 500}
    elif family == "responses":
        body |= {"input": turns, "tools": [{"type": "function", **function, "parameters": schema}], "max_output_tokens": 500, "store": False}
    else:
        body |= {"system": "Be brief.", "messages": turns, "tools": [{**function, "input_schema": schema}], "max_tokens": 500}
    return json.dumps(body).encode()


def message(file):
    """The first line and the body of what comes next."""
    first, length, chunked = file.readline(), 0, False
    while (line := file.readline().lower()) not in (b"\r\n", b""):
        length = int(line[15:]) if line.startswith(b"content-length:") else length
        chunked = chunked or line.startswith(b"transfer-encoding: chunked")
    body = file.read(length)
    while chunked and (size := int(file.readline(), 16)):
        body += file.read(size)
        file.readline()
    if chunked:
        file.readline()
    return first, body


def provide(listener):
    def serve(connection):
        with connection, connection.makefile("rb") as file:
            while (read := message(file))[0]:
                path = read[0].split()[1].decode()
                connection.sendall(answer(path, json.loads(read[1] or b"{}").get("stream", False)))

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def configure(folder, provider):
    models = CATALOG.replace('"streaming"', '"streaming", "tools"')
    named = lambda family: models.replace('slug = "bench"', f'slug = "{family}"').replace('"Bench"', f'"Bench {family}"', 1)
    entries = [named(family).replace('best_path = "chat"', f'best_path = "{family}"') for family in FAMILIES]
    routes = "".join(
        f'[provider.{family}]\nbase_url = "http://127.0.0.1:{provider}/v1"\nspeaks = ["{family}"]\n'
        f'[[route]]\nslug = "{family}"\ntargets = [ {{ provider = "{family}", model = "bench-1" }} ]\n' for family in FAMILIES
    )
    for name, text in [("catalog.toml", "\n".join(entries)), ("routes.toml", routes)]:
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *subject]
    subprocess.run([*new, "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)


def kinds():
    """A customer's family and its path, a target's family, and whether the answer is a stream."""
    return ((family, path, slug, stream) for family, path in FAMILIES.items() for slug in FAMILIES for stream in (False, True))


def main(folder, provider):
    configure(folder, provider)
    environment = {**os.environ, "FAREBOX_LOG": "warn"}
    place = {"cwd": folder, "env": environment}
    create = [FAREBOX, "keys", "create", "--new-ledger", "--label", "bench", "--balance", "900", "--reference", "bench"]
    created = subprocess.run([*create, "--rate", "1000000", "--json"], check=True, capture_output=True, **place)
    key = json.loads(created.stdout)["secret"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listen = ["--listen", f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    gateway = subprocess.Popen([FAREBOX, "serve", *listen], **place)
    try:
        for _ in range(600):
            try:
                plain = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.1)
        trusted = ssl.create_default_context(cafile=os.path.join(folder, "cert.pem"))
        connection = trusted.wrap_socket(plain, server_hostname="127.0.0.1")
        with connection, connection.makefile("rb") as file:
            for family, path, slug, stream in [*kinds()] * ROUNDS:
                body = request(family, slug, stream)
                head = f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
                head += f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                first, said = message(file)
                assert b" 200 " in first and b"word 59" in said, (family, slug, stream, first, said[-500:])
    finally:
        gateway.terminate()
        gateway.wait(60)


with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
    threading.Thread(target=provide, args=(listener,), daemon=True).start()
    main(folder, listener.getsockname()[1])
