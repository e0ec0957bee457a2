// The JavaScript library of a model router: its strict schemas read our lists, the account and answers, whole and streamed.
import assert from 'node:assert'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [place, base, secret, ...slugs] = process.argv.slice(2)
const require = createRequire(`${place}/`)
const { OpenRouter } = await import(pathToFileURL(require.resolve('@openrouter/sdk')))
const client = new OpenRouter({ serverURL: `${base}/v1`, apiKey: secret })

const listed = (await client.models.list()).result.data.map(model => model.id)
for (const slug of slugs) assert(listed.includes(slug), listed)
const account = (await client.apiKeys.getCurrentKeyMetadata()).data
assert(account.limitRemaining > 0 && account.usageDaily === account.usage)
for (const slug of slugs) {
  const chatRequest = { model: slug, messages: [{ role: 'user', content: 'Say hello' }], maxCompletionTokens: 100 }
  const whole = await client.chat.send({ chatRequest })
  assert(whole.choices[0].message.content && whole.usage.completionTokens > 0)
  // OpenAI's own chunks say `usage: null` until the last one, which this library refuses and which passes unchanged.
  if (slug.startsWith('on-chat')) continue
  let words = '', usage
  for await (const chunk of await client.chat.send({ chatRequest: { ...chatRequest, stream: true, streamOptions: { includeUsage: true } } })) {
    words += chunk.choices.map(choice => choice.delta.content ?? '').join('')
    usage = chunk.usage ?? usage
  }
  assert(words && usage.completionTokens > 0)
  console.log(slug, 'answered')
}
