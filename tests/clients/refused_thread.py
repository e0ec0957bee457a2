"""The tool runner of the Anthropic library for Python: as refused_thread.mjs."""

import json
import os

import httpx2
from anthropic import Anthropic, beta_tool

sent = []


def note(response):
    sent.append(("thread" in json.loads(response.request.content), response.status_code))


@beta_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


client = Anthropic(
    base_url=os.environ["BASE"] + "/native",
    api_key=os.environ["KEY"],
    max_retries=0,
    http_client=httpx2.Client(event_hooks={"response": [note]}),
)
asked = [{"role": "user", "content": 'weather {"city": "Bonn"}'}]
runner = client.beta.messages.tool_runner(model="claude-sim", max_tokens=1024, tools=[weather], messages=asked)
message = runner.until_done()
print(sent)
assert sent == [(True, 400), (False, 200), (False, 200)], sent
assert "sunny in Bonn" in message.content[0].text, message
print("went on without a thread:", message.content[0].text)
