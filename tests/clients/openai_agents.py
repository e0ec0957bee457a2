"""An agent of the OpenAI Agents SDK on the slug in the environment, by chat and by responses: a tool, a picture, a long turn."""

import asyncio
import base64
import os
import pathlib
import sys

from agents import (Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool,
                    set_tracing_disabled)
from openai import AsyncOpenAI

set_tracing_disabled(True)
slug = os.environ["SLUG"]
client = AsyncOpenAI()
picture = "data:image/png;base64," + base64.b64encode(pathlib.Path(os.environ["PICTURE"]).read_bytes()).decode()
called = []


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    called.append(city)
    return "sunny"


async def streamed(agent, question):
    run = Runner.run_streamed(agent, question)
    async for _ in run.stream_events():
        pass
    return run.final_output


async def main():
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        agent = Agent(name="Test", model=kind(model=slug, openai_client=client), tools=[weather],
                      model_settings=ModelSettings(store=False))
        if len(sys.argv) > 1:
            print(await streamed(agent, sys.argv[1]))
            continue
        for run in (lambda question: Runner.run(agent, question), lambda question: streamed(agent, question)):
            called.clear()
            answer = await run('weather {"city": "Bonn"}')
            answer = getattr(answer, "final_output", answer)
            assert called == ["Bonn"] and "sunny" in answer, (called, answer)
            seen = await run([{"role": "user", "content": [{"type": "input_text", "text": "What is this?"},
                                                           {"type": "input_image", "image_url": picture, "detail": "auto"}]}])
            assert "8" in getattr(seen, "final_output", seen), seen
        long = await streamed(agent, "Write 3000 words")
        assert len(long.split()) == 3000, len(long.split())
    print("done")


asyncio.run(main())
