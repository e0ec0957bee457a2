"""Tool loops that move between models, forth and back, with the vendors' own Python libraries.

    switches.py chat|responses|messages

Each conversation is what the libraries' examples write: the answer as it came, then the results. Prints a line for each.
"""

import json
import os
import sys

KINDS = [f"{family}-{kind}" for family in ("chat", "responses", "messages") for kind in ("readable", "sealed")]
BASE, KEY = os.environ["BASE"], os.environ["KEY"]
SCHEMA = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"], "additionalProperties": False}
ASKED = "Look around."


def result(arguments):
    return f"in the {arguments['room']}"


def chat():
    import openai
    client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA, "strict": True}}]

    def turn(messages, model, stream):
        asked = {"model": model, "messages": messages, "tools": tools, "reasoning_effort": "medium"}
        if stream:
            with client.chat.completions.stream(**asked) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
        messages.append(message)
        calls = message.tool_calls or []
        messages += [{"role": "tool", "tool_call_id": call.id, "content": result(json.loads(call.function.arguments))} for call in calls]
        return len(calls), message.content

    return turn, lambda: [{"role": "user", "content": ASKED}]


def responses():
    import openai
    client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}]

    def turn(items, model, stream):
        asked = {"model": model, "input": items, "tools": tools, "store": False, "reasoning": {"effort": "medium", "summary": "auto"},
                 "include": ["reasoning.encrypted_content"]}
        if stream:
            # The helper `responses.stream` adds a member `parsed` to texts, which the vendor refuses when it comes back.
            *_, last = client.responses.create(**asked, stream=True)
            response = last.response
        else:
            response = client.responses.create(**asked)
        items += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": result(json.loads(call.arguments))} for call in calls]
        return len(calls), response.output_text

    return turn, lambda: [{"role": "user", "content": ASKED}]


def messages():
    import anthropic
    client = anthropic.Anthropic(base_url=f"{BASE}/native", api_key=KEY, max_retries=0)
    tools = [{"name": "look", "input_schema": SCHEMA}]

    def turn(turns, model, stream):
        asked = {"model": model, "messages": turns, "tools": tools, "max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        turns.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if calls:
            turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": result(call.input)} for call in calls]})
        return len(calls), "".join(block.text for block in message.content if block.type == "text")

    return turn, lambda: [{"role": "user", "content": ASKED}]


turn, begin = {"chat": chat, "responses": responses, "messages": messages}[sys.argv[1]]()
for stream in (False, True):
    for one in KINDS:
        for other in KINDS:
            conversation, said = begin(), []
            try:
                for number in range(5):
                    said.append(turn(conversation, other if number % 2 else one, stream))
                calls, texts = [calls for calls, _ in said], [text for _, text in said]
                assert calls == [1, 1, 2, 1, 0] and texts[:4] == ["I look."] * 4 and "in the attic" in texts[4], said
                print("took", one, other, flush=True)
            except Exception as error:
                print("broke", one, other, f"streamed={stream} after {len(said)} turns: {type(error).__name__}: {error}", flush=True)
