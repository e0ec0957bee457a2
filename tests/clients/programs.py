"""One question to a slug by an agent library: programs.py LIBRARY, with BASE, KEY, SLUG and CASE in the environment.

CASE: plain and tool ask for a whole answer; stream, empty, middle and broken for a stream, whose text is printed as it comes.
"""

import asyncio
import json
import os
import sys

base, key, slug, case = (os.environ[name] for name in ("BASE", "KEY", "SLUG", "CASE"))
base += "/v1"
prompt = {"tool": 'weather {"city": "Bonn"}', "middle": "Write 3000 words", "broken": "Write 50 words"}.get(case, "Say hello")
streams = case not in ("plain", "tool")

# One white point.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEANl9ngAAAAABJRU5ErkJggg=="
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def openai():
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=key)
    messages = [{"role": "user", "content": prompt}]
    if streams:
        for chunk in client.chat.completions.create(model=slug, messages=messages, stream=True):
            print("".join(choice.delta.content or "" for choice in chunk.choices), end="")
        return
    tools = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
    answer = client.chat.completions.create(model=slug, messages=messages, tools=tools).choices[0].message
    for call in answer.tool_calls or []:
        messages += [answer, {"role": "tool", "tool_call_id": call.id, "content": weather(**json.loads(call.function.arguments))}]
        answer = client.chat.completions.create(model=slug, messages=messages, tools=tools).choices[0].message
    print(answer.content)


def anthropic():
    from anthropic import Anthropic, beta_tool

    client = Anthropic(base_url=os.environ["BASE"] + "/native", api_key=key)
    messages = [{"role": "user", "content": prompt}]
    if streams:
        with client.messages.stream(model=slug, max_tokens=20000, messages=messages) as stream:
            for text in stream.text_stream:
                print(text, end="")
        return
    run = client.beta.messages.tool_runner(model=slug, max_tokens=1024, messages=messages, tools=[beta_tool(weather)])
    print("".join(getattr(block, "text", "") for block in run.until_done().content))


def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel(model=slug, openai_client=AsyncOpenAI(base_url=base, api_key=key))
    agent = Agent(name="Test", model=model, tools=[function_tool(weather)])

    async def stream():
        run = Runner.run_streamed(agent, prompt)
        async for event in run.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                print(event.data.delta, end="")

    asyncio.run(stream()) if streams else print(Runner.run_sync(agent, prompt).final_output)


def openai_agents_own_tools():
    """Tools that the SDK declares by their types and runs here: one runs, or the request is refused; nothing else will do."""
    from agents import Agent, ApplyPatchTool, Computer, ComputerTool, OpenAIResponsesModel, Runner, ShellTool, set_tracing_disabled
    from openai import AsyncOpenAI, BadRequestError

    set_tracing_disabled(True)
    ran = []
    does = lambda name: lambda self, *given, **named: ran.append(name) or PICTURE
    Screen = type("Screen", (Computer,), {name: does(name) for name in Computer.__abstractmethods__})
    Editor = type("Editor", (), {name: does(name) for name in ("create_file", "update_file", "delete_file")})
    tool, given = {
        "shell": (ShellTool(executor=lambda asked: ran.append("shell") or "42"), {"commands": ["cat note.txt"]}),
        "patch": (ApplyPatchTool(editor=Editor()), {"type": "create_file", "path": "a", "diff": "+42"}),
        "computer": (ComputerTool(Screen()), {"action": {"type": "screenshot"}}),
    }[case]
    model = OpenAIResponsesModel(model=slug, openai_client=AsyncOpenAI(base_url=base, api_key=key))
    try:
        print(Runner.run_sync(Agent(name="Test", model=model, tools=[tool]), "use a tool " + json.dumps(given)).final_output)
    except BadRequestError as refused:
        return print(refused)
    assert ran, f"{case} was offered, paid for, and neither run nor refused"


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

    tools = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
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
