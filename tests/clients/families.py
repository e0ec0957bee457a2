"""Asks on-FAMILY-real in all three families, whole and streamed, and compares the answers: families.py FAMILY."""

import json
import os
import sys
import urllib.request

target = sys.argv[1]
SYSTEM = "You are a clerk. Answer in one line."
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
# One list of turns for each case: (role, text), ("call", id) or ("result", id, text).
CASES = {
    "one turn": [("user", "Name a river in France.")],
    "three turns": [("user", "Hello there"), ("assistant", "Good morning."), ("user", "Name two rivers, \"quoted\" and é.")],
    "a tool's result": [("user", "How is the weather in Bonn?"), ("call", "call_1"), ("result", "call_1", "sunny, 20 °C")],
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/native/v1/messages"}


def chat(turns):
    def message(turn):
        if turn[0] == "call":
            call = {"id": turn[1], "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bonn"}'}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if turn[0] == "result":
            return {"role": "tool", "tool_call_id": turn[1], "content": turn[2]}
        return {"role": turn[0], "content": turn[1]}

    tools = [{"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": TOOL}}]
    return {"messages": [{"role": "system", "content": SYSTEM}, *map(message, turns)], "tools": tools, "max_tokens": 24}


def messages(turns):
    def message(turn):
        if turn[0] == "call":
            call = {"type": "tool_use", "id": turn[1], "name": "weather", "input": {"city": "Bonn"}}
            return {"role": "assistant", "content": [call]}
        if turn[0] == "result":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": turn[1], "content": turn[2]}]}
        return {"role": turn[0], "content": turn[1]}

    tools = [{"name": "weather", "description": "The weather", "input_schema": TOOL}]
    return {"system": SYSTEM, "messages": list(map(message, turns)), "tools": tools, "max_tokens": 24}


def responses(turns):
    def item(turn):
        if turn[0] == "call":
            return {"type": "function_call", "call_id": turn[1], "name": "weather", "arguments": '{"city":"Bonn"}'}
        if turn[0] == "result":
            return {"type": "function_call_output", "call_id": turn[1], "output": turn[2]}
        if turn[0] == "assistant":
            # The real server takes no plain string here.
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn[1], "annotations": []}]}
        return {"role": turn[0], "content": turn[1]}

    tools = [{"type": "function", "name": "weather", "description": "The weather", "parameters": TOOL, "strict": False}]
    return {"instructions": SYSTEM, "input": list(map(item, turns)), "tools": tools, "max_output_tokens": 24}


def ask(family, turns, stream):
    body = {"chat": chat, "messages": messages, "responses": responses}[family](turns)
    body |= {"model": f"on-{target}-real", "temperature": 0, "stream": stream}
    if stream and family == "chat":
        body["stream_options"] = {"include_usage": True}
    headers = {"authorization": f"Bearer {os.environ['KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(os.environ["BASE"] + PATHS[family], json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=900) as answer:
        text, lost = answer.read().decode(), answer.headers.get("x-farebox-lost")
    if not stream:
        return of_whole(family, json.loads(text)), lost
    lines = [line[5:].strip() for line in text.split("\n") if line.startswith("data:")]
    return of_stream(family, [json.loads(line) for line in lines if line != "[DONE]"]), lost


def counts(family, usage):
    """Input and output tokens."""
    if family == "chat":
        return usage["prompt_tokens"], usage["completion_tokens"]
    if family == "responses":
        return usage["input_tokens"], usage["output_tokens"]
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    return usage["input_tokens"] + read + written, usage["output_tokens"]


ENDS = {"stop": "end", "end_turn": "end", "stop_sequence": "end", "completed": "end", "length": "length", "max_tokens": "length",
        "incomplete": "length"}


def of_whole(family, answer):
    if family == "chat":
        choice = answer["choices"][0]
        text, end = choice["message"]["content"] or "", choice["finish_reason"]
    elif family == "messages":
        text, end = "".join(block.get("text", "") for block in answer["content"]), answer["stop_reason"]
    else:
        parts = [part for item in answer["output"] if item["type"] == "message" for part in item["content"]]
        text, end = "".join(part["text"] for part in parts), answer["status"]
    return text, ENDS[end], counts(family, answer["usage"])


def of_stream(family, events):
    if family == "chat":
        choices = [choice for event in events for choice in event["choices"]]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        end = [choice["finish_reason"] for choice in choices if choice["finish_reason"]][-1]
        return text, ENDS[end], counts(family, events[-1]["usage"])
    if family == "messages":
        text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
        last = [event for event in events if event["type"] == "message_delta"][-1]
        # The last event wins where it repeats a count of the first.
        usage = {**events[0]["message"]["usage"], **{name: count for name, count in last["usage"].items() if count}}
        return text, ENDS[last["delta"]["stop_reason"]], counts(family, usage)
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    return text, ENDS[events[-1]["response"]["status"]], counts(family, events[-1]["response"]["usage"])


wrong = []
for name, turns in CASES.items():
    for stream in (False, True):
        own, _ = ask(target, turns, stream)
        for family in PATHS:
            if family != target:
                theirs, lost = ask(family, turns, stream)
                same = theirs == own
                print(f"{family} on {target}, {name}, {'streamed' if stream else 'whole'}: {'the same' if same else 'DIFFERENT'}"
                      f", {own[2][0]} in, {own[2][1]} out{f', lost: {lost}' if lost else ''}")
                if not same:
                    wrong.append((family, name, stream, theirs, own))
for fault in wrong:
    print(*fault, sep="\n  ")
sys.exit(bool(wrong))
