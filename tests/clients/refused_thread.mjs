// The tool runner of the Anthropic library for Node threads its conversation unless the server cannot: then it sends everything.
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";

const sent = [];
const client = new Anthropic({
  baseURL: `${process.env.BASE}/native`,
  apiKey: process.env.KEY,
  maxRetries: 0,
  fetch: async (url, init) => {
    const answer = await fetch(url, init);
    sent.push({ thread: JSON.parse(init.body).thread !== undefined, status: answer.status });
    return answer;
  },
});
const weather = betaTool({
  name: "weather",
  description: "The weather of a city",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  run: ({ city }) => `sunny in ${city}`,
});
const message = await client.beta.messages.toolRunner({
  model: "claude-sim",
  max_tokens: 1024,
  tools: [weather],
  messages: [{ role: "user", content: 'weather {"city": "Bonn"}' }],
});
console.log(JSON.stringify(sent));
const [first, ...rest] = sent;
if (!first.thread || first.status !== 400) throw new Error("the first request was no refused thread");
if (rest.length !== 2 || rest.some((request) => request.thread || request.status !== 200)) throw new Error("it did not go on");
if (!message.content[0].text.includes("sunny in Bonn")) throw new Error(JSON.stringify(message.content));
console.log("went on without a thread:", message.content[0].text);
