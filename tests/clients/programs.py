"""One question to a slug by an agent library: programs.py LIBRARY, with BASE, KEY, SLUG and CASE in the environment.

CASE: plain and tool ask for a whole answer; stream, empty, middle and broken for a stream, whose text is printed as it comes.
"""

import asyncio
import os
import sys

base, key, slug, case = (os.environ[name] for name in ("BASE", "KEY", "SLUG", "CASE"))
base += "/v1"
prompt = {"tool": 'weather {"city": "Bonn"}', "middle": "Write 3000 words", "broken": "Write 50 words"}.get(case, "Say hello")
streams = case not in ("plain", "tool")


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def strands():
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": base, "api_key": key}, model_id=slug)
    agent = Agent(model=model, callback_handler=None, tools=[tool(weather)])

    async def stream():
        async for event in agent.stream_async(prompt):
            print(event.get("data", ""), end="")

    # This library always streams.
    asyncio.run(stream()) if streams else print(agent(prompt))


def agent_framework():
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatClient

    client = OpenAIChatClient(model=slug, base_url=base, api_key=key)
    agent = Agent(client=client, default_options={"store": False}, tools=[weather])

    async def run():
        if not streams:
            return print((await agent.run(prompt)).text)
        async for update in agent.run(prompt, stream=True):
            print(update.text or "", end="")

    asyncio.run(run())


def agno():
    from agno.agent import Agent
    from agno.models.openai import OpenAILike

    agent = Agent(model=OpenAILike(id=slug, base_url=base, api_key=key), telemetry=False, tools=[weather])
    if not streams:
        return print(agent.run(prompt).content)
    for event in agent.run(prompt, stream=True):
        print(getattr(event, "content", "") or "", end="")


def langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(base_url=base, api_key=key, model=slug)
    if streams:
        for chunk in model.stream(prompt):
            print(chunk.text, end="")
        return
    model = model.bind_tools([tool(weather)])
    messages = [HumanMessage(prompt)]
    messages.append(model.invoke(messages))
    for call in messages[-1].tool_calls:
        messages.append(ToolMessage(weather(**call["args"]), tool_call_id=call["id"], name=call["name"]))
    print((model.invoke(messages) if len(messages) > 2 else messages[-1]).text)


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel(slug, provider=OpenAIProvider(base_url=base, api_key=key)), tools=[weather])

    async def stream():
        async with agent.run_stream(prompt) as answer:
            async for text in answer.stream_text(delta=True):
                print(text, end="")

    asyncio.run(stream()) if streams else print(agent.run_sync(prompt).output)


def inspect():
    from inspect_ai.model import ChatMessageTool, ChatMessageUser, get_model
    from inspect_ai.tool import ToolInfo, ToolParams
    from inspect_ai.util import JSONSchema

    # It never streams.
    parameters = ToolParams(properties={"city": JSONSchema(type="string")}, required=["city"])
    tools = [ToolInfo(name="weather", description="The weather", parameters=parameters)] if case == "tool" else []

    async def run():
        model = get_model("openai-api/farebox/" + slug, base_url=base, api_key=key)
        messages = [ChatMessageUser(content=prompt)]
        answer = (await model.generate(messages, tools)).message
        for call in answer.tool_calls or []:
            messages += [answer, ChatMessageTool(content=weather(**call.arguments), tool_call_id=call.id, function=call.function)]
            answer = (await model.generate(messages, tools)).message
        print(answer.text)

    asyncio.run(run())


def openrouter_python():
    from openrouter import OpenRouter

    tools = [{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
    messages = [{"role": "user", "content": prompt}]
    with OpenRouter(server_url=base, api_key=key) as client:
        if streams:
            for chunk in client.chat.send(model=slug, messages=messages, stream=True):
                print("".join(choice.delta.content or "" for choice in chunk.choices), end="")
            return
        answer = client.chat.send(model=slug, messages=messages, tools=tools).choices[0].message
        if case == "tool":
            call = answer.tool_calls[0]
            result = {"role": "tool", "tool_call_id": call.id, "content": weather("Bonn")}
            messages += [answer.model_dump(by_alias=True, exclude_unset=True), result]
            answer = client.chat.send(model=slug, messages=messages, tools=tools).choices[0].message
        print(answer.content)


globals()[sys.argv[1].replace("-", "_")]()
