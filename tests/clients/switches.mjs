// Tool loops that move between models, forth and back, with the vendors' own libraries for Node.
//
//     switches.mjs chat|responses|messages
//
// Each conversation is what the libraries' examples write: the answer as it came, then the results. Prints a line for each. Unlike
// the one for Python, native requests ask for adaptive thinking.

import assert from "node:assert/strict";

const families = ["chat", "responses", "messages"];
const kinds = families.flatMap((family) => [`${family}-readable`, `${family}-sealed`]);
const { BASE: base, KEY: apiKey } = process.env;
const schema = { type: "object", properties: { room: { type: "string" } }, required: ["room"], additionalProperties: false };
const asked = "Look around.";
const result = ({ room }) => `in the ${room}`;

async function openai() {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 });
}

async function chat() {
  const client = await openai();
  const tools = [{ type: "function", function: { name: "look", parameters: schema, strict: true } }];
  return async (messages, model, stream) => {
    const body = { model, messages, tools, reasoning_effort: "medium" };
    const completions = client.chat.completions;
    const message = stream ? await completions.stream(body).finalMessage() : (await completions.create(body)).choices[0].message;
    const calls = message.tool_calls ?? [];
    messages.push(message, ...calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: result(JSON.parse(call.function.arguments)) })));
    return [calls.length, message.content];
  };
}

async function responses() {
  const client = await openai();
  const tools = [{ type: "function", name: "look", parameters: schema, strict: true }];
  return async (input, model, stream) => {
    const body = { model, input, tools, store: false, reasoning: { effort: "medium", summary: "auto" }, include: ["reasoning.encrypted_content"] };
    let response;
    // The helper `responses.stream` adds a member `parsed` to texts, which the vendor refuses when it comes back.
    if (stream) for await (const event of await client.responses.create({ ...body, stream })) response = event.response ?? response;
    else response = await client.responses.create(body);
    const calls = response.output.filter((item) => item.type === "function_call");
    input.push(...response.output, ...calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: result(JSON.parse(call.arguments)) })));
    const texts = response.output.filter((item) => item.type === "message").flatMap((item) => item.content);
    return [calls.length, texts.map((part) => part.text).join("")];
  };
}

async function messages() {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: `${base}/native`, apiKey, maxRetries: 0 });
  const tools = [{ name: "look", input_schema: schema }];
  return async (turns, model, stream) => {
    const body = { model, messages: turns, tools, max_tokens: 8000, thinking: { type: "adaptive" } };
    const message = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    const calls = message.content.filter((block) => block.type === "tool_use");
    turns.push({ role: "assistant", content: message.content });
    if (calls.length) turns.push({ role: "user", content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: result(call.input) })) });
    return [calls.length, message.content.filter((block) => block.type === "text").map((block) => block.text).join("")];
  };
}

const turn = await { chat, responses, messages }[process.argv[2]]();
for (const stream of [false, true]) {
  for (const one of kinds) {
    for (const other of kinds) {
      const conversation = [{ role: "user", content: asked }];
      const said = [];
      try {
        for (let number = 0; number < 5; number += 1) said.push(await turn(conversation, number % 2 ? other : one, stream));
        assert.deepEqual(said.map(([calls]) => calls), [1, 1, 2, 1, 0]);
        assert(said.slice(0, 4).every(([, text]) => text === "I look.") && said[4][1].includes("in the attic"), JSON.stringify(said));
        console.log("took", one, other);
      } catch (error) {
        console.log("broke", one, other, `streamed=${stream} after ${said.length} turns: ${error}`);
      }
    }
  }
}
