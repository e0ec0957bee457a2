// What people do with the OpenAI library for Node, against the base URL, key and slug in the environment.

import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const slug = process.env.SLUG;
const simulated = slug.endsWith("sim");
const messages = [{ role: "user", content: "Say PONG" }];

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert(models.includes(slug));

const answer = await client.chat.completions.create({ model: slug, messages, max_tokens: 20 });
assert.equal(answer.model, slug);
assert(answer.usage.total_tokens > 0 && answer.choices[0].message.content);
if (simulated) assert.equal(answer.choices[0].message.content, "PONG");

let pieces = 0;
for await (const chunk of await client.chat.completions.create({ model: slug, messages, max_tokens: 20, stream: true })) {
  assert.equal(chunk.model, slug);
  assert(chunk.choices.length > 0);
  pieces += 1;
}
assert(pieces > 1);

const stream = client.chat.completions.stream({ model: slug, messages, max_tokens: 20, stream_options: { include_usage: true } });
assert((await stream.totalUsage()).total_tokens > 0);

const response = await client.responses.create({ model: slug, input: "Say PONG", max_output_tokens: 20 });
assert.equal(response.model, slug);
if (simulated) assert.equal(response.output_text, "PONG");

let last;
for await (const event of await client.responses.create({ model: slug, input: "Say PONG", max_output_tokens: 20, stream: true })) last = event;
assert(["response.completed", "response.incomplete"].includes(last.type), last.type);
assert.equal(last.response.model, slug);
assert(last.response.usage.total_tokens > 0);

await assert.rejects(client.chat.completions.create({ model: "no-such", messages }), (error) => error.status === 404);
await assert.rejects(client.responses.create({ model: slug, input: "x", previous_response_id: "r" }), (error) => error.status === 400);
console.log("done");
