// Embeddings by the OpenAI library for Node, as embeddings.py has them.

import assert from "node:assert/strict";
import OpenAI from "openai";

const { BASE, KEY, SLUG, SIMULATED } = process.env;
const client = new OpenAI({ baseURL: `${BASE}/v1`, apiKey: KEY, maxRetries: 0 });
const texts = ["The key is in the cellar.", "Die Tür ist offen, „sagt“ er.", "日本語のテキスト"];

const asked = [
  { input: texts[0] }, { input: texts }, { input: Array(2048).fill("word") }, { input: [5, 6, 7] }, { input: [[5, 6], [7]] },
  { input: texts, encoding_format: "float" }, { input: texts, encoding_format: "base64" },
];
if (SIMULATED) asked.push({ input: texts, dimensions: 3 });
let answer;
for (const one of asked) {
  answer = await client.embeddings.create({ model: SLUG, ...one });
  const count = Array.isArray(one.input) && typeof one.input[0] !== "number" ? one.input.length : 1;
  assert.equal(answer.model, SLUG);
  assert.deepEqual(answer.data.map(each => each.index), [...Array(count).keys()]);
  assert(answer.data.every(each => each.embedding.length > 2));
  assert(answer.usage.prompt_tokens > 0 && answer.usage.prompt_tokens === answer.usage.total_tokens);
}
if (SIMULATED) assert.equal(answer.data[0].embedding.length, 3);
for (const input of ["", [], ["a", ""], Array(2049).fill("a")]) {
  await assert.rejects(client.embeddings.create({ model: SLUG, input }), error => error.status === 400);
}
console.log("done");
