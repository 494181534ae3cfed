// openai.mjs GATEWAY KEY LIMITED TOOLS: the official client of OpenAI, unmodified, is given the gateway's address and a key.
// It does what its users do, and what came of that is printed as one JSON object. LIMITED: a key that may not call at all.
// TOOLS: where npm installed the client.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [gateway, key, limited, tools] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(createRequire(tools + '/').resolve('openai')).href);
const connect = apiKey => new OpenAI({ baseURL: gateway + '/api/llm-gateway/v1', apiKey, maxRetries: 0 });
const client = connect(key);
const found = {};

const messages = [{ role: 'user', content: 'Say hello.' }];
const weather = [{ type: 'function', function: { name: 'get_weather', strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } } }];

found.models = [];
for await (const model of client.models.list()) found.models.push(model.id);
found.model = (await client.models.retrieve('gpt')).id;

const { data: whole, response, request_id } = await client.chat.completions.create({ model: 'gpt', messages }).withResponse();
found.whole = { text: whole.choices[0].message.content, used: whole.usage.total_tokens, alias: response.headers.get('x-durward-model'), request_id };

// A stream for which no usage was asked has none; one for which it was has it once, at its end.
for (const [name, options] of [['stream', {}], ['counted', { stream_options: { include_usage: true } }]]) {
  let text = '', empty = 0, used = 0;
  for await (const chunk of await client.chat.completions.create({ model: 'gpt', messages, stream: true, ...options })) {
    text += chunk.choices[0]?.delta.content ?? '';
    empty += chunk.choices.length === 0;
    used += chunk.usage?.total_tokens ?? 0;
  }
  found[name] = { text, empty, used };
}

// Leaving a stream after its first piece.
const left = await client.chat.completions.create({ model: 'gpt', messages, stream: true });
for await (const chunk of left) if (chunk.choices[0].delta.content) break;
found.left = left.controller.signal.aborted;

const called = await client.chat.completions.create({ model: 'gpt', messages, tools: weather });
const call = called.choices[0].message.tool_calls[0];
found.tool = { reason: called.choices[0].finish_reason, name: call.function.name, arguments: JSON.parse(call.function.arguments) };
const answered = await client.chat.completions.create({ model: 'gpt',
  messages: [...messages, called.choices[0].message, { role: 'tool', tool_call_id: call.id, content: '{"celsius":21}' }] });
found.answered = answered.choices[0].message.content;
const pieces = [];
const streamed = await client.chat.completions.stream({ model: 'gpt', messages, tools: weather })
  .on('tool_calls.function.arguments.delta', event => pieces.push(event.arguments_delta)).finalChatCompletion();
found.streamedTool = { arguments: streamed.choices[0].message.tool_calls[0].function.arguments, pieces: pieces.filter(p => p).length };

// This client asks for base64 and decodes it by itself.
const embedded = await client.embeddings.create({ model: 'embed', input: ['one', 'two'] });
found.embeddings = embedded.data.map(one => one.embedding);

const responded = await client.responses.create({ model: 'gpt', input: 'Say hello.' });
found.response = { text: responded.output_text, used: responded.usage.total_tokens };
let deltas = '', last;
for await (const event of await client.responses.create({ model: 'gpt', input: 'Say hello.', stream: true })) {
  if (event.type === 'response.output_text.delta') deltas += event.delta;
  last = event.type;
}
found.streamedResponse = { text: deltas, last };

async function refused(kind, asked) {
  try {
    await asked;
    return 'it was not refused';
  } catch (error) {
    const headers = Object.fromEntries(['retry-after'].filter(n => error.headers?.get(n)).map(n => [n, Number(error.headers.get(n)) > 0]));
    return { right: error instanceof kind, status: error.status, code: error.code, ...headers };
  }
}
const ask = (client, model, content = 'Hi') => client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
found.wrongKey = await refused(OpenAI.AuthenticationError, ask(connect('dw-' + '0'.repeat(43)), 'gpt'));
found.unknownModel = await refused(OpenAI.NotFoundError, ask(client, 'gpt-99'));
found.unknownEmbedding = await refused(OpenAI.NotFoundError, client.embeddings.create({ model: 'claude-99', input: 'x' }));
found.limited = await refused(OpenAI.RateLimitError, ask(connect(limited), 'gpt'));
found.limitedStream = await refused(OpenAI.RateLimitError, connect(limited).chat.completions.create({ model: 'gpt', messages, stream: true }));
found.tooLong = await refused(OpenAI.BadRequestError, ask(client, 'gpt', 'too long'));
found.broken = await refused(OpenAI.InternalServerError, ask(client, 'gpt', 'break'));

console.log(JSON.stringify(found));
