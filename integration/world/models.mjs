// models.mjs CLIENT GATEWAY KEY: an unmodified client of models is given the gateway's address and a key, and asks once for a whole
// answer and once for a stream. Prints what it understood of each, as one JSON object.
const [client, gateway, key] = process.argv.slice(2);
const found = {};

// The AI SDK tells of a stream's error beside it.
async function vercel(model) {
  const { generateText, streamText } = await import('ai');
  const whole = await generateText({ model, prompt: 'hi', maxRetries: 0 });
  found.whole = { text: whole.text, used: whole.usage.totalTokens, reason: whole.finishReason };
  let failed;
  const stream = streamText({ model, prompt: 'hi', maxRetries: 0, onError: event => { failed = event.error; } });
  let text = '';
  for await (const piece of stream.textStream) text += piece;
  if (failed) throw failed;
  found.stream = { text, used: (await stream.usage).totalTokens, reason: await stream.finishReason };
}

async function langchain(model) {
  const whole = await model.invoke('hi');
  found.whole = { text: whole.content, used: whole.usage_metadata.total_tokens };
  let all;
  for await (const piece of await model.stream('hi')) all = all ? all.concat(piece) : piece;
  found.stream = { text: all.content, used: all.usage_metadata.total_tokens };
}

const clients = {
  async 'ai-responses'() {
    const { createOpenAI } = await import('@ai-sdk/openai');
    await vercel(createOpenAI({ baseURL: gateway + '/v1', apiKey: key })('gpt'));
  },
  async 'ai-chat'() {
    const { createOpenAI } = await import('@ai-sdk/openai');
    await vercel(createOpenAI({ baseURL: gateway + '/v1', apiKey: key }).chat('gpt'));
  },
  async 'ai-compatible'() {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    await vercel(createOpenAICompatible({ name: 'durward', baseURL: gateway + '/v1', apiKey: key, includeUsage: true })('gpt'));
  },
  async 'ai-anthropic'() {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    await vercel(createAnthropic({ baseURL: gateway + '/v1', apiKey: key })('claude'));
  },
  async 'langchain-openai'() {
    const { ChatOpenAI } = await import('@langchain/openai');
    await langchain(new ChatOpenAI({ model: 'gpt', apiKey: key, configuration: { baseURL: gateway + '/v1' }, maxRetries: 0 }));
  },
  async 'langchain-anthropic'() {
    const { ChatAnthropic } = await import('@langchain/anthropic');
    await langchain(new ChatAnthropic({ model: 'claude', apiKey: key, anthropicApiUrl: gateway, maxRetries: 0 }));
  },
  async openai() {
    const { default: OpenAI } = await import('openai');
    const api = new OpenAI({ baseURL: gateway + '/v1', apiKey: key, maxRetries: 0 });
    const asked = { model: 'gpt', messages: [{ role: 'user', content: 'hi' }] };
    const whole = await api.chat.completions.create(asked);
    found.whole = { text: whole.choices[0].message.content, used: whole.usage.total_tokens };
    const stream = api.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    found.stream = { text: (await stream.finalMessage()).content, used: (await stream.totalUsage()).total_tokens };
  },
  async anthropic() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const api = new Anthropic({ baseURL: gateway, apiKey: key, maxRetries: 0 });
    const asked = { model: 'claude', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
    const whole = await api.messages.create(asked);
    found.whole = { text: whole.content[0].text, used: whole.usage.output_tokens };
    const last = await api.messages.stream(asked).finalMessage();
    found.stream = { text: last.content[0].text, used: last.usage.output_tokens };
    found.counted = (await api.messages.countTokens({ model: 'claude', messages: asked.messages })).input_tokens;
  },
};
await clients[client]();
console.log(JSON.stringify(found));
