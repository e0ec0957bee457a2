// One question to a slug by a library: programs.mjs LIBRARY, with BASE, KEY, SLUG and CASE in the environment, as programs.py does.

const { BASE, KEY, SLUG, CASE } = process.env
const prompts = { tool: 'weather {"city": "Bonn"}', middle: 'Write 3000 words', broken: 'Write 50 words' }
const prompt = prompts[CASE] ?? 'Say hello'
const streams = CASE !== 'plain' && CASE !== 'tool'
const messages = [{ role: 'user', content: prompt }]
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = [{ type: 'function', function: { name: 'weather', parameters } }]
const print = text => process.stdout.write(text ?? '')
const weather = ({ city }) => `sunny in ${city}`

async function openrouter() {
  const { OpenRouter } = await import('@openrouter/sdk')
  const client = new OpenRouter({ serverURL: `${BASE}/v1`, apiKey: KEY })
  if (streams) {
    for await (const chunk of await client.chat.send({ chatRequest: { model: SLUG, messages, stream: true } })) {
      print(chunk.choices.map(choice => choice.delta.content ?? '').join(''))
    }
    return
  }
  const ask = async () => (await client.chat.send({ chatRequest: { model: SLUG, messages, tools } })).choices[0].message
  let answer = await ask()
  for (const call of answer.toolCalls ?? []) {
    messages.push(answer, { role: 'tool', toolCallId: call.id, content: weather(JSON.parse(call.function.arguments)) })
    answer = await ask()
  }
  print(answer.content)
}

async function openai() {
  const { default: OpenAI } = await import('openai')
  const client = new OpenAI({ baseURL: `${BASE}/v1`, apiKey: KEY })
  if (streams) {
    for await (const chunk of await client.chat.completions.create({ model: SLUG, messages, stream: true })) {
      print(chunk.choices[0]?.delta.content)
    }
    return
  }
  const run = client.chat.completions.runTools({
    model: SLUG, messages, tools: [{ type: 'function', function: { name: 'weather', parameters, parse: JSON.parse, function: weather } }],
  })
  print(await run.finalContent())
}

async function anthropic() {
  const { default: Anthropic } = await import('@anthropic-ai/sdk')
  const client = new Anthropic({ baseURL: `${BASE}/native`, authToken: KEY, apiKey: null })
  const asked = { model: SLUG, max_tokens: 20000, messages }
  if (streams) return void await client.messages.stream(asked).on('text', print).done()
  const run = client.beta.messages.toolRunner({
    ...asked, max_tokens: 1024, tools: [{ type: 'custom', name: 'weather', input_schema: parameters, parse: input => input, run: weather }],
  })
  print((await run).content.map(block => block.text ?? '').join(''))
}

// Its default provider speaks responses; `chat` does not. In `turns` the second and the third turn send back what was answered.
async function ai(model) {
  const { generateText, jsonSchema, stepCountIs, streamText, tool } = await import('ai')
  if (streams && CASE !== 'turns') {
    const answer = streamText({ model, prompt, onError: ({ error }) => console.error(error) })
    for await (const piece of answer.textStream) print(piece)
    return
  }
  const given = { weather: tool({ inputSchema: jsonSchema(parameters), execute: weather }) }
  const said = []
  for (const content of CASE === 'turns' ? ['Say one', prompts.tool, 'Say hello'] : [prompt]) {
    said.push({ role: 'user', content })
    const answer = await generateText({ model, messages: said, tools: given, stopWhen: stepCountIs(4) })
    said.push(...answer.response.messages)
    print(answer.text)
  }
}

async function provider() {
  const { createOpenAI } = await import('@ai-sdk/openai')
  return createOpenAI({ baseURL: `${BASE}/v1`, apiKey: KEY })
}

const libraries = {
  openrouter, openai, anthropic,
  'ai-sdk': async () => ai((await provider()).chat(SLUG)),
  'ai-sdk-responses': async () => ai((await provider())(SLUG)),
}
await libraries[process.argv[2]]()
