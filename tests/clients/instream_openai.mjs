// What the OpenAI library for Node raises when the stream says that the request was at fault.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.BASE}/v1`, apiKey: process.env.KEY });
const asked = { model: "gpt-tool", stream: true, messages: [{ role: "user", content: "hi" }] };
try {
  for await (const chunk of await client.chat.completions.create(asked)) console.log(chunk.choices[0].delta.content);
} catch (error) {
  console.log(error.constructor.name, error.type, error.code, error.message);
}
