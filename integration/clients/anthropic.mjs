// anthropic.mjs GATEWAY KEY LIMITED TOOLS: the official client of Anthropic, unmodified, is given the gateway's address and a
// key. It does what its users do, and what came of that is printed as one JSON object. LIMITED: a key that may not call at
// all. TOOLS: where npm installed the client.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [gateway, key, limited, tools] = process.argv.slice(2);
const { default: Anthropic } = await import(pathToFileURL(createRequire(tools + '/').resolve('@anthropic-ai/sdk')).href);
const baseURL = gateway + '/api/llm-gateway';
const connect = apiKey => new Anthropic({ baseURL, apiKey, authToken: null, maxRetries: 0 });
const client = connect(key);
const found = {};

const request = { model: 'claude', max_tokens: 100, messages: [{ role: 'user', content: 'Say hello.' }] };
const weather = { tools: [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }] };

found.models = [];
for await (const model of client.models.list()) found.models.push(model.id);

const { data: whole, response, request_id } = await client.messages.create({ ...request, system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }] }).withResponse();
found.whole = { text: whole.content[0].text, input: whole.usage.input_tokens, output: whole.usage.output_tokens,
  alias: response.headers.get('x-durward-model'), request_id };
const bearer = new Anthropic({ baseURL, apiKey: null, authToken: key, maxRetries: 0 });
found.bearer = (await bearer.messages.create(request)).content[0].text;

let text = '', events = [];
for await (const event of await client.messages.create({ ...request, stream: true })) {
  events.push(event.type);
  if (event.type === 'content_block_delta') text += event.delta.text;
}
found.stream = { text, events };

const called = await client.messages.create({ ...request, ...weather });
const use = called.content.find(block => block.type === 'tool_use');
found.tool = { reason: called.stop_reason, name: use.name, input: use.input };
const answered = await client.messages.create({ ...request, ...weather, messages: [...request.messages, { role: 'assistant', content: called.content },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: '{"celsius":21}' }] }] });
found.answered = answered.content[0].text;
const pieces = [];
const final = await client.messages.stream({ ...request, ...weather }).on('inputJson', piece => pieces.push(piece)).finalMessage();
found.streamedTool = { reason: final.stop_reason, input: final.content.find(block => block.type === 'tool_use').input,
  pieces: pieces.filter(p => p).length, output: final.usage.output_tokens };

async function refused(kind, asked) {
  try {
    await asked;
    return 'it was not refused';
  } catch (error) {
    const headers = Object.fromEntries(['retry-after'].filter(n => error.headers?.get(n)).map(n => [n, Number(error.headers.get(n)) > 0]));
    return { right: error instanceof kind, status: error.status, type: error.error?.error?.type, ...headers };
  }
}
const say = content => ({ ...request, messages: [{ role: 'user', content }] });
found.wrongKey = await refused(Anthropic.AuthenticationError, connect('dw-' + '0'.repeat(43)).messages.create(request));
found.unknownModel = await refused(Anthropic.NotFoundError, client.messages.create({ ...request, model: 'claude-99' }));
found.limited = await refused(Anthropic.RateLimitError, connect(limited).messages.create(request));
found.limitedStream = await refused(Anthropic.RateLimitError, connect(limited).messages.stream(request).finalMessage());
found.tooLong = await refused(Anthropic.BadRequestError, client.messages.create(say('too long')));
found.broken = await refused(Anthropic.InternalServerError, client.messages.create(say('break')));

console.log(JSON.stringify(found));
