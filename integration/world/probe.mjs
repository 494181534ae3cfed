// probe.mjs SDK: puts questions to an MCP server with an official client, and prints the answers as one JSON object, without
// what differs from run to run. SDK: 1 (@modelcontextprotocol/sdk), 2 (@modelcontextprotocol/client, 2025 era) or modern
// (the same, 2026-07-28). What to ask comes as JSON on standard input:
//   url, token      where, and with which bearer token ("": none)
//   transport       "sse": the transport of 2024-11-05
//   probes          [{name, method, params, ...}], one after another. Besides:
//     progress      ask for progress; it is part of the answer
//     wait          names of notifications that have to come besides the answer, each as often as it is named
//     cancel        cancel the request when its first progress has come
//     task          a call that becomes a task (2025-11-25): its result, its end, the list of tasks
//     resume        leave a call's stream after its first event and go on from there on another
//     listen        a subscription of 2026-07-28, and the tool whose call has something sent on it
//     http          requests as they are: what a client that knows more, or less, would see
//   mask            further texts that differ, as regular expressions
// What the server asks (sampling, roots, forms, pages) is answered always the same, and is part of the answer.
import { readFileSync } from 'node:fs';
import { masker } from './mask.mjs';
import { connect } from './official.mjs';

const [sdk] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(0, 'utf8'));
const headers = plan.token ? { Authorization: 'Bearer ' + plan.token } : {};
const limit = 30_000;

const asked = []; // what the server asked in the present probe
const heard = []; // its notifications
const progressed = []; // how far it said it was
let waiting = () => {};

const { client, transport, schema } = await connect(sdk, plan, headers, {
  // Roots are asked for at any time, when a conversation has begun.
  asked: (method, params) => method !== 'roots/list' && asked.push({ method, params }),
  heard: notification => {
    heard.push(notification);
    waiting();
  },
});

// The SDKs drop progress that is read together with the answer: what has come is taken before they see it.
const { onmessage } = transport;
transport.onmessage = (message, extra) => {
  if (message.method === 'notifications/progress') {
    const { progressToken, ...progress } = message.params;
    progressed.push(progress);
  }
  onmessage(message, extra);
};

// heardAll waits until each of the names has been heard.
function heardAll(names) {
  const count = (list, name) => list.filter(n => n === name).length;
  const missing = () => names.filter(n => count(heard.map(h => h.method), n) < count(names, n));
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not heard: ${missing()}`)), limit);
    waiting = () => {
      if (missing().length) return;
      clearTimeout(timer);
      resolve();
    };
    waiting();
  });
}

const request = (method, params = {}, options = {}) => client.request({ method, params }, schema, { timeout: limit, ...options });

// listed asks for all pages of a list.
async function listed(method, member) {
  const pages = [];
  let cursor;
  do {
    const { nextCursor, ...page } = await request(method, cursor ? { cursor } : {});
    page[member].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)); // servers in Go list in any order
    pages.push(page);
    cursor = nextCursor;
  } while (cursor);
  return pages;
}

async function run(probe) {
  if (probe.http) return exchanges(probe.http);
  if (probe.resume) return resumed(probe);
  if (probe.task) return task(probe);
  if (probe.listen) return listened(probe);
  const found = {};
  const options = {};
  const controller = new AbortController();
  if (probe.progress || probe.cancel) {
    options.onprogress = () => probe.cancel && controller.abort('enough');
  }
  if (probe.cancel) options.signal = controller.signal;
  const answered = request(probe.method, probe.params, options).then(
    result => (found.result = result),
    error => (found.error = { code: error.code, message: error.message, data: error.data }),
  );
  await Promise.all([answered, probe.wait && heardAll(probe.wait)]);
  if (probe.progress) found.progress = [...progressed];
  if (probe.wait) found.heard = [...new Set(heard.filter(h => probe.wait.includes(h.method)).map(h => JSON.stringify(probe.quiet ? h.method : h)))].sort().map(h => JSON.parse(h));
  return found;
}

// task asks for a call as a task of 2025-11-25, and for its result, which waits for its end.
async function task({ method, params, cancel }) {
  const created = await request(method, { ...params, task: { ttl: 60_000 } });
  const taskId = created.task.taskId;
  const found = { created, known: (await request('tasks/get', { taskId })).taskId === taskId };
  if (cancel) found.canceled = await request('tasks/cancel', { taskId });
  else found.result = await request('tasks/result', { taskId });
  found.ended = await request('tasks/get', { taskId });
  found.listed = await request('tasks/list').then(list => list.tasks.some(t => t.taskId === taskId), error => error.message);
  found.unknown = await request('tasks/get', { taskId: 'no-such-task' }).then(() => 'is known', () => 'is refused'); // by whom does not matter
  return found;
}

// listened opens a subscription, has something sent on it, and ends it.
async function listened({ method, params, listen }) {
  const controller = new AbortController();
  const ended = request(method, params, { signal: controller.signal, timeout: 2 * limit }).catch(() => {});
  await heardAll(['notifications/subscriptions/acknowledged']);
  await request('tools/call', { name: listen, arguments: {} });
  await heardAll(['notifications/resources/updated']);
  controller.abort('enough');
  await ended;
  return { heard: heard.map(({ method, params }) => ({ method, params })) };
}

// send sends an HTTP request in the client's session.
function send(method, body, more = {}) {
  const session = transport.sessionId ? { 'Mcp-Session-Id': transport.sessionId } : {};
  const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
  return fetch(plan.url, {
    method, signal: AbortSignal.timeout(limit), body: body === undefined ? undefined : JSON.stringify(body),
    headers: { ...headers, ...session, ...(version ? { 'MCP-Protocol-Version': version } : {}), Accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...more },
  });
}

// exchanges tells of each request what came back: its status, and the message's result or its error's code. Who refuses, and
// whether as JSON or as a stream, does not matter.
async function exchanges(requests) {
  const found = [];
  for (const { method, body, header } of requests) {
    const answer = await send(method, body, header);
    const text = await answer.text();
    // A server without sessions has none to end; the gateway ends its own.
    const said = { status: method === 'DELETE' && (answer.ok || answer.status === 405) ? 'ended' : answer.status };
    if (answer.status < 400 && text) {
      const message = JSON.parse(text.match(/^data: (.+)$/m)?.[1] ?? text);
      Object.assign(said, { id: message.id, result: message.result, code: message.error?.code });
    }
    found.push(said);
  }
  return found;
}

// events reads a stream's events until one satisfies last, or nothing has come for a while.
async function events(answer, last, patience = limit) {
  const found = [];
  let buffer = '';
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    let timer;
    const quiet = new Promise(resolve => (timer = setTimeout(() => resolve({ done: true }), patience)));
    const { done, value } = await Promise.race([reader.read(), quiet]);
    clearTimeout(timer);
    if (value !== undefined) buffer += value;
    for (let end; (end = buffer.indexOf('\n\n')) >= 0; buffer = buffer.slice(end + 2)) {
      const event = {};
      for (const line of buffer.slice(0, end).split('\n')) {
        const [, field, text] = line.match(/^(\w+): ?(.*)$/) ?? [];
        if (field) event[field] = text;
      }
      found.push(event);
      if (last(event)) {
        await reader.cancel();
        return found;
      }
    }
    if (done) {
      await reader.cancel().catch(() => {});
      return found;
    }
  }
}

// resumed calls, leaves at the first event that has an id, and reads the rest elsewhere. Some servers only give what had come
// by then, and some the events of other streams, too.
async function resumed({ params }) {
  const message = { jsonrpc: '2.0', id: 'resumed', method: 'tools/call', params: { ...params, _meta: { progressToken: 'resumed' } } };
  const begun = await events(await send('POST', message), event => event.id);
  for (let tries = 0; tries < 20; tries++) {
    const answer = await send('GET', undefined, { Accept: 'text/event-stream', 'Last-Event-ID': begun.at(-1).id });
    if (answer.status === 409) { // the server has not seen yet that the first stream is left; through a gateway that takes a moment
      await new Promise(resolve => setTimeout(resolve, 250));
      continue;
    }
    if (!answer.ok) return { status: answer.status };
    const rest = await events(answer, event => event.data?.includes('"id":"resumed"'), 2_000);
    const data = rest.filter(e => e.data?.includes('resumed')).map(e => JSON.parse(e.data));
    if (data.some(m => m.id === 'resumed')) return { begun: begun.length, rest: data };
  }
  throw new Error('the answer is lost');
}

const found = {};
const mask = masker(plan, () => transport.sessionId);
async function put(name, ask) {
  asked.length = heard.length = progressed.length = 0;
  let answer;
  try {
    answer = await ask();
  } catch (error) {
    answer = { error: { code: error.code, message: error.message, data: error.data } };
  }
  found[name] = mask({ ...(Array.isArray(answer) ? { answers: answer } : answer), ...(asked.length ? { asked } : {}) });
}

await put('initialize', () => ({
  server: client.getServerVersion(), capabilities: client.getServerCapabilities(), instructions: client.getInstructions(),
  version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
}));
const capabilities = client.getServerCapabilities() ?? {};
if (capabilities.tools) await put('tools/list', () => listed('tools/list', 'tools'));
if (capabilities.resources) {
  await put('resources/list', () => listed('resources/list', 'resources'));
  await put('resources/templates/list', () => listed('resources/templates/list', 'resourceTemplates'));
}
if (capabilities.prompts) await put('prompts/list', () => listed('prompts/list', 'prompts'));
for (const probe of plan.probes) await put(probe.name, () => run(probe));
await put('end', async () => {
  await transport.terminateSession?.();
  await client.close();
  return {};
});
process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));
