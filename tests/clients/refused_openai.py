"""A limit that alone is too dear is refused with remedies: each of them, applied to the request, is served."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["BASE"] + "/v1", api_key=os.environ["KEY"], max_retries=0)
asked = {"model": "gpt-sim", "messages": [{"role": "user", "content": "Say PONG"}], "max_tokens": 30_000}
try:
    client.chat.completions.create(**asked)
    raise AssertionError("it was served")
except openai.RateLimitError as error:
    details = error.body["details"]
    print(error.message, details)
    for remedy in details["remedies"]:
        answer = client.chat.completions.create(**{**asked, **remedy})
        text = "".join(chunk.choices[0].delta.content or "" for chunk in answer) if remedy.get("stream") else (
            answer.choices[0].message.content)
        assert text == "PONG", text
    assert len(details["remedies"]) == 2, details
print("served with the remedy:", text)
