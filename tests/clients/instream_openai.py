"""What the OpenAI library for Python raises when the stream says that the request was at fault."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["BASE"] + "/v1", api_key=os.environ["KEY"])
try:
    for chunk in client.chat.completions.create(model="gpt-tool", stream=True, messages=[{"role": "user", "content": "hi"}]):
        print(chunk.choices[0].delta.content)
except openai.APIError as error:
    print(type(error).__name__, error.type, error.code, error.message)
