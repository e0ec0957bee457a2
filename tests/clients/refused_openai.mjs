// An item that is only referred to: refused with a remedy. Applied, and with the item itself, the answer comes.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.BASE}/v1`, apiKey: process.env.KEY, maxRetries: 0 });
const input = [{ role: "user", content: "Say PONG" }];
const first = await client.responses.create({ model: "gpt-sim", input });
const [item] = first.output;
const ask = (rest, items) => client.responses.create({ model: "gpt-sim", input: [...input, ...items, ...input], ...rest });
try {
  await ask({}, [{ type: "item_reference", id: item.id }]);
  throw new Error("it was served");
} catch (error) {
  if (!(error instanceof OpenAI.BadRequestError)) throw error;
  console.log(error.message, JSON.stringify(error.error.details));
  const answer = await ask(error.error.details.remedies[0], [item]);
  if (answer.output_text !== "PONG") throw new Error(answer.output_text);
  console.log("served with the remedy:", answer.output_text);
}
