// One question to a slug by the OpenRouter SDK, with BASE, KEY, SLUG and CASE in the environment, as programs.py does.
import { OpenRouter } from '@openrouter/sdk'

const { BASE, KEY, SLUG, CASE } = process.env
const client = new OpenRouter({ serverURL: `${BASE}/v1`, apiKey: KEY })
const prompts = { tool: 'weather {"city": "Bonn"}', middle: 'Write 3000 words', broken: 'Write 50 words' }
const messages = [{ role: 'user', content: prompts[CASE] ?? 'Say hello' }]
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = [{ type: 'function', function: { name: 'weather', parameters } }]

if (CASE === 'plain' || CASE === 'tool') {
  const ask = async () => (await client.chat.send({ chatRequest: { model: SLUG, messages, tools } })).choices[0].message
  let answer = await ask()
  if (CASE === 'tool') {
    messages.push(answer, { role: 'tool', toolCallId: answer.toolCalls[0].id, content: 'sunny in Bonn' })
    answer = await ask()
  }
  console.log(answer.content)
} else {
  for await (const chunk of await client.chat.send({ chatRequest: { model: SLUG, messages, stream: true } })) {
    process.stdout.write(chunk.choices.map(choice => choice.delta.content ?? '').join(''))
  }
}
