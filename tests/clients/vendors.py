#!/usr/bin/env python3
"""Six models for one session to move between: three families, with readable and with sealed thinking. And every service with a double,
below a path of its own (`/groq/v1/chat/completions`).

    vendors.py PORT_FILE REFUSALS_FILE

They play a loop of tools: a message such as `Read {"file_path": "note.txt"}` is answered with a thought and that call, its result
with a thought and the result's text. Who offers the tool `look` is sent through the ROOMS, with a thought and a call for each.
They are as strict as the published rules (docs/translation.md, "Thinking"): besides the rules here, about what a vendor made itself,
the strict doubles judge each request (`tests/doubles/examples/judge.rs`, the program in $JUDGE). What they refuse they write down. The
model's name says which of the six it is.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL = re.compile(r"(\w+) (\{.*?\})(?=\s|$|<)", re.S)
# Answers with these calls, one after the other; two at once in the third.
ROOMS = [["hall"], ["kitchen \"2\""], ["cellar \\ stairs", "gärten 🌳"], ["attic"]]
# Whose rules hold for a model. A server that stores nothing and whose reasoning can be read has no double.
DOUBLES = {"chat-readable": "vllm", "chat-sealed": "openrouter", "responses-sealed": "openai", "messages-readable": "anthropic",
           "messages-sealed": "anthropic"}
JUDGE = subprocess.Popen([os.environ["JUDGE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ONE = threading.Lock()
# Services whose thinking only they can read.
SEALING = {"openai", "openrouter", "anthropic"}
# What each model made: its seals with what stood before them, and the ids of its items with the reasoning item they need.
SEALS, IDS, COUNT = {}, {}, [0]


class Refused(Exception):
    """The vendor's own refusal: status, code and words."""


def name(kind, model):
    COUNT[0] += 1
    return f"{kind}_{model}_{COUNT[0]}"


def seal(model, before="", kind=None, body=None, thought=""):
    """A seal that only this model can read; its vendor's double knows those that it made itself, of this kind."""
    made = name("seal", model)
    if kind and (model in DOUBLES or model in (f"{service}-sealed" for service in SEALING)):
        made = ask({"seal": kind, "body": body, "thought": thought})
    SEALS[made] = (model, before)
    return made


def ask(what):
    """A line of the judge's."""
    with ONE:
        print(json.dumps(what), file=JUDGE.stdin, flush=True)
        return JUDGE.stdout.readline().strip()


def own(value, model):
    return SEALS.get(value, ("", ""))[0] == model


def texts(content):
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content or [] if isinstance(part, dict)]


def since(turns, said):
    """What came after the model's last turn."""
    last = max((at for at, turn in enumerate(turns) if said(turn)), default=-1)
    return turns[last + 1:]


def wanted(text, tools):
    """The call that a user asks for, if the client offers the tool."""
    for tool, arguments in CALL.findall(text):
        if tool in tools:
            return [(tool, arguments)]
    return []


def tour(said):
    """The next calls of who is sent through the rooms, by the calls and results so far: pairs of arguments and result."""
    left = list(said)
    for rooms in ROOMS:
        if not left:
            return [("look", json.dumps({"room": room})) for room in rooms]
        for room in rooms:
            arguments, result = left.pop(0)
            if json.loads(arguments) != {"room": room} or result != f"in the {room}":
                raise Refused(400, None, f"the history says {arguments} and {result!r}, it was {room}")
    return []


def judged(vendor, path, headers, body):
    """The refusal of a vendor's double."""
    if vendor is None:
        return
    why = ask({"vendor": vendor, "path": path, "headers": headers, "body": body})
    if why:
        raise Refused(400, None, why)


def prefix(body, messages):
    kept = json.dumps([body.get("system"), body.get("tools"), unmarked(messages)], sort_keys=True)
    return hashlib.sha256(kept.encode()).hexdigest()


def unmarked(value):
    """Cache marks are no part of what stands before a block."""
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def chat(body, model):
    open_calls = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Refused(400, None, f"no call {message['tool_call_id']}")
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            raise Refused(400, None, "'tool_calls' must be followed by tool messages")
        open_calls += [call["id"] for call in message.get("tool_calls") or []]
        for detail in message.get("reasoning_details") or []:
            if "sealed" in model and not own(detail.get("data"), model):
                raise Refused(400, None, "unknown reasoning data")
    if open_calls:
        raise Refused(400, None, "calls without results")
    new = since(body["messages"], lambda message: message["role"] == "assistant")
    results = [text for message in new if message["role"] == "tool" for text in texts(message["content"])]
    tools = {tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool}
    asked = " ".join(text for message in new for text in texts(message.get("content")))
    calls = [] if results else wanted(asked, tools)
    if "look" in tools:
        made = {call["id"]: call["function"]["arguments"] for message in body["messages"] for call in message.get("tool_calls") or []}
        calls = tour((made[message["tool_call_id"]], "".join(texts(message["content"]))) for message in body["messages"] if message["role"] == "tool")
    said = {"role": "assistant"}
    if "sealed" in model:
        said["reasoning_details"] = [{"type": "reasoning.encrypted", "data": seal(model), "index": 0}]
    else:
        said["reasoning_content"] = "hm"
    if calls:
        said["content"] = "I look."
        said["tool_calls"] = [{"index": index, "id": name("call", model), "type": "function", "function": {"name": tool, "arguments": arguments}}
                              for index, (tool, arguments) in enumerate(calls)]
    else:
        said["content"] = "I see: " + " ".join(results or [asked])[:300]
    finish = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}
    head = {"id": "c", "created": 7, "model": model}
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": finish}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = lambda choices: {**head, "object": "chat.completion.chunk", "choices": choices}
    return [chunk([{"index": 0, "delta": said, "finish_reason": None}]),
            chunk([{"index": 0, "delta": {}, "finish_reason": finish}]), {**chunk([]), "usage": usage}, "[DONE]"]


def responses(body, model):
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    if body.get("store") is not False:
        raise Refused(400, None, "nothing is stored here")
    calls, seen = set(), set()
    for at, item in enumerate(items):
        kind, known = item.get("type", "message"), item.get("id")
        content = item.get("encrypted_content")
        if content is not None and not own(content, model):
            raise Refused(400, "invalid_encrypted_content", "The encrypted content could not be verified.")
        # Clients name messages by themselves, but a vendor looks up the items that vendors name.
        if known is not None and (known.startswith(("rs_", "fc_")) or known in IDS) and IDS.get(known, ("", None))[0] != model:
            raise Refused(404, None, f"Item with id '{known}' not found.")
        if kind == "reasoning":
            if "sealed" in model and content is None:
                raise Refused(404, None, f"Item with id '{known}' not found.")
            after = items[at + 1].get("type", "message") if at + 1 < len(items) else None
            if after not in ("message", "function_call"):
                raise Refused(400, None, "a reasoning item was provided without its required following item")
        needs = IDS.get(known, ("", None))[1]
        if needs is not None and needs not in seen:
            raise Refused(400, None, "an item was provided without its required 'reasoning' item")
        seen.add(known)
        if kind == "function_call":
            calls.add(item["call_id"])
        if kind == "function_call_output" and item["call_id"] not in calls:
            raise Refused(400, None, "no tool call found for this output")
    new = since(items, lambda item: item.get("role") == "assistant" or item.get("type") == "function_call")
    results = [text for item in new if item.get("type") == "function_call_output" for text in texts(item["output"])]
    tools = {tool.get("name") for tool in body.get("tools") or []}
    asked = " ".join(text for item in new for text in texts(item.get("content")))
    wants = [] if results else wanted(asked, tools)
    if "look" in tools:
        made = {item["call_id"]: item["arguments"] for item in items if item.get("type") == "function_call"}
        wants = tour((made[item["call_id"]], "".join(texts(item["output"]))) for item in items if item.get("type") == "function_call_output")
    thought = name("rs", model)
    IDS[thought] = (model, None)
    reasoning = {"type": "reasoning", "id": thought, "summary": []}
    if "sealed" in model:
        reasoning["encrypted_content"] = seal(model, kind="encrypted", body=body)
    else:
        reasoning["content"] = [{"type": "reasoning_text", "text": "hm"}]
    text = "I look." if wants else "I see: " + " ".join(results or [asked])[:300]
    said = [{"type": "message", "id": name("msg", model), "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    said += [{"type": "function_call", "id": name("fc", model), "call_id": name("call", model), "name": tool, "arguments": arguments, "status": "completed"}
             for tool, arguments in wants]
    # The items of an answer belong to its reasoning, the first one right behind it.
    IDS.update({item["id"]: (model, thought) for item in said})
    whole = {"id": "r", "object": "response", "created_at": 7, "status": "completed", "model": model, "output": [reasoning, *said],
             "usage": {"input_tokens": 90, "output_tokens": 9, "total_tokens": 99, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 1}}}
    if not body.get("stream"):
        return whole
    events = [{"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}]
    for index, made in enumerate(whole["output"]):
        place = {"item_id": made["id"], "output_index": index}
        begun = {"message": {**made, "content": []}, "function_call": {**made, "arguments": ""}}.get(made["type"], made)
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        if made["type"] == "message":
            part = made["content"][0]
            events.append({"type": "response.content_part.added", **place, "content_index": 0, "part": {**part, "text": ""}})
            events.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": text, "logprobs": []})
            events.append({"type": "response.output_text.done", **place, "content_index": 0, "text": text, "logprobs": []})
            events.append({"type": "response.content_part.done", **place, "content_index": 0, "part": part})
        if made["type"] == "function_call":
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": made["arguments"]})
            events.append({"type": "response.function_call_arguments.done", **place, "arguments": made["arguments"], "name": made["name"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": made})
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def messages(body, model):
    turns = body["messages"]
    blocks = lambda turn: turn["content"] if isinstance(turn["content"], list) else [{"type": "text", "text": turn["content"]}]
    for at, turn in enumerate(turns):
        for number, block in enumerate(blocks(turn)):
            if block["type"] not in ("thinking", "redacted_thinking"):
                continue
            made = block.get("signature") or block.get("data")
            place = f"messages.{at}.content.{number}: Invalid `signature` in `thinking` block"
            if not own(made, model):
                raise Refused(400, None, place)
            if "sealed" in model and SEALS[made][1] != prefix(body, turns[:at]):
                raise Refused(400, None, place + ". The block is bound to a different conversation.")
        used = [block["id"] for block in blocks(turn) if block["type"] == "tool_use"]
        after = blocks(turns[at + 1]) if at + 1 < len(turns) else []
        results = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
        if used != results:
            raise Refused(400, None, "`tool_use` ids were found without `tool_result` blocks immediately after")
    said = [turn for turn in turns if turn["role"] == "assistant"]
    thinking = (body.get("thinking") or {}).get("type")
    if thinking == "enabled" and said and any(block["type"] == "tool_use" for block in blocks(said[-1])) and not blocks(said[-1])[0]["type"].endswith("thinking"):
        raise Refused(400, None, "Expected `thinking` or `redacted_thinking`, but found `tool_use`.")
    last = next(turn for turn in reversed(turns) if turn["role"] == "user")
    results = [block for block in blocks(last) if block["type"] == "tool_result"]
    tools = {tool["name"] for tool in body.get("tools") or []}
    asked = " ".join(block.get("text", "") for block in blocks(last) if block["type"] == "text")
    calls = [] if results else wanted(asked, tools)
    if "look" in tools:
        made = {block["id"]: json.dumps(block["input"]) for turn in turns for block in blocks(turn) if block["type"] == "tool_use"}
        calls = tour((made[block["tool_use_id"]], "".join(texts(block["content"]))) for turn in turns for block in blocks(turn) if block["type"] == "tool_result")
    content = []
    if thinking in ("enabled", "adaptive"):
        made = seal(model, prefix(body, turns), "signature", body, "" if "sealed" in model else "hm")
        sealed = {"type": "redacted_thinking", "data": made}
        content.append(sealed if "sealed" in model else {"type": "thinking", "thinking": "hm", "signature": made})
    if calls:
        content.append({"type": "text", "text": "I look."})
        content += [{"type": "tool_use", "id": name("toolu", model), "name": tool, "input": json.loads(arguments)} for tool, arguments in calls]
    else:
        seen = " ".join(" ".join(texts(result.get("content"))) for result in results) or asked
        content.append({"type": "text", "text": "I see: " + seen[:300]})
    stop = "tool_use" if calls else "end_turn"
    whole = {"id": "m", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": stop,
             "stop_sequence": None, "usage": {"input_tokens": 90, "output_tokens": 9}}
    if not body.get("stream"):
        return whole
    events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, block in enumerate(content):
        delta, begun = None, dict(block)
        if block["type"] == "tool_use":
            delta, begun = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}, {**block, "input": {}}
        elif block["type"] == "text":
            delta, begun = {"type": "text_delta", "text": block["text"]}, {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        if delta:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]


class Vendors(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        body = json.loads(raw)
        path = self.path.split("?")[0]
        service = path.split("/")[1]
        model, vendor = body["model"], DOUBLES.get(body["model"])
        if service != "v1":
            model, vendor = service.replace(".", "-") + ("-sealed" if service in SEALING else ""), service
        family = {"completions": chat, "responses": responses, "messages": messages}.get(path.rsplit("/", 1)[-1])
        if family is None:
            return self.reply(404, "application/json", json.dumps({"error": {"message": "no such path", "type": "not_found_error"}}))
        try:
            if '_fbx"' in raw or '"fbx1.' in raw:
                raise Refused(400, None, "something made up arrived")
            # First what the model itself made: its refusals have the vendors' own words, the doubles' say which rule it is.
            said = family(body, model)
            judged(vendor, path, list(self.headers.items()), body)
        except Refused as refused:
            status, code, words = refused.args
            with open(sys.argv[2], "a") as file:
                file.write(f"{path} {model}: {words}\n")
            error = {"type": "invalid_request_error", "code": code, "message": words}
            return self.reply(status, "application/json", json.dumps({"type": "error", "error": error}))
        if isinstance(said, dict):
            return self.reply(200, "application/json", json.dumps(said))
        frame = lambda event: f"data: {event}\n\n" if isinstance(event, str) else (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        return self.reply(200, "text/event-stream", "".join(frame(event) for event in said))

    def reply(self, status, kind, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendors)
    with open(sys.argv[1], "w") as file:
        file.write(str(server.server_port))
    server.serve_forever()
