"""What people do with the OpenAI library for Python, against the base URL, key and slug in the environment."""

import base64
import os
import pathlib

import openai
import pydantic

client = openai.OpenAI(max_retries=0)
slug = os.environ["SLUG"]
simulated = slug.endswith("sim")
words = [{"role": "user", "content": "Say PONG"}]

assert slug in [model.id for model in client.models.list()]
assert client.models.retrieve(slug).id == slug

answer = client.chat.completions.create(model=slug, messages=words, max_tokens=20)
assert answer.model == slug and answer.usage.total_tokens > 0 and answer.choices[0].message.content
assert not simulated or answer.choices[0].message.content == "PONG"

raw = client.chat.completions.with_raw_response.create(model=slug, messages=words, max_tokens=20)
assert raw.headers["x-farebox-cost"] and raw.headers["x-request-id"].startswith("req_")

chunks = list(client.chat.completions.create(model=slug, messages=words, max_tokens=20, stream=True))
assert all(chunk.model == slug and chunk.choices for chunk in chunks)
chunks = list(client.chat.completions.create(model=slug, messages=words, max_tokens=20, stream=True,
                                             stream_options={"include_usage": True}))
assert chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices

response = client.responses.create(model=slug, input="Say PONG", max_output_tokens=20)
assert response.model == slug and response.usage.total_tokens > 0
assert not simulated or response.output_text == "PONG"
events = list(client.responses.create(model=slug, input="Say PONG", max_output_tokens=20, stream=True))
assert events[-1].type in ("response.completed", "response.incomplete") and events[-1].response.model == slug

if simulated:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    asked = [{"role": "user", "content": 'weather {"city": "Bonn"}'}]
    call = client.chat.completions.create(model=slug, messages=asked, tools=[tool]).choices[0].message
    assert call.tool_calls[0].function.arguments == '{"city":"Bonn"}', call
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "sunny"}
    after = client.chat.completions.create(model=slug, messages=[*asked, call, result], tools=[tool])
    assert "sunny" in after.choices[0].message.content

    with client.chat.completions.stream(model=slug, messages=asked, tools=[tool]) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls" and final.message.tool_calls[0].function.arguments == '{"city":"Bonn"}', final

    class Place(pydantic.BaseModel):
        city: str
        people: int

    parsed = client.chat.completions.parse(model=slug, messages=words, response_format=Place).choices[0].message.parsed
    assert isinstance(parsed, Place), parsed
    parsed = client.responses.parse(model=slug, input="Say PONG", text_format=Place).output_parsed
    assert isinstance(parsed, Place), parsed

    picture = "data:image/png;base64," + base64.b64encode(pathlib.Path(os.environ["PICTURE"]).read_bytes()).decode()
    seen = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": picture}}]}]
    assert "8" in client.chat.completions.create(model=slug, messages=seen).choices[0].message.content
    seen = [{"role": "user", "content": [{"type": "input_image", "image_url": picture, "detail": "auto"}]}]
    assert "8" in client.responses.create(model=slug, input=seen).output_text

for wrong, status in [({"model": "no-such"}, 404), ({"max_tokens": -1}, 400), ({"service_tier": "priority"}, 400)]:
    try:
        client.chat.completions.create(**{"model": slug, "messages": words, **wrong})
        raise AssertionError(f"{wrong} was served")
    except openai.APIStatusError as error:
        assert error.status_code == status and error.body["message"], error
print("done")
