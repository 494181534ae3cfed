// The official clients of MCP, each behind the same few words.

// answers of a user and a model who are always of the same mind.
const answers = {
  'roots/list': () => ({ roots: [{ uri: 'file:///lab', name: 'lab' }] }),
  'sampling/createMessage': () => ({ role: 'assistant', model: 'lab', stopReason: 'endTurn', content: { type: 'text', text: 'What the model said.' } }),
  'elicitation/create': params => (params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: filled(params.requestedSchema) }),
};

// filled returns what the user writes into a form.
function filled(schema) {
  const content = {};
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const choice = field.enum ?? (field.oneOf ?? field.items?.anyOf ?? [])?.map(o => o.const) ?? [];
    if (field.type === 'array') content[name] = (field.items?.enum ?? choice).slice(0, 1);
    else if (choice.length) content[name] = choice[0];
    else if (field.type === 'boolean') content[name] = true;
    else if (field.type === 'number' || field.type === 'integer') content[name] = field.minimum ?? 7;
    else content[name] = { email: 'lab@example.test', uri: 'https://example.test/', date: '2026-11-25', 'date-time': '2026-11-25T00:00:00Z' }[field.format] ?? 'written'.padEnd(field.minLength ?? 0, '.');
  }
  return content;
}

const everything = {
  sampling: {}, roots: { listChanged: true }, elicitation: { form: {}, url: {} },
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
};

// connect connects the client that sdk names; a plain one (plan.plain) cannot ask its user. told.asked and told.heard are told of the server's requests and notifications.
export async function connect(sdk, plan, headers, told) {
  const url = new URL(plan.url);
  const capabilities = plan.plain ? {} : everything;
  const options = { requestInit: { headers }, eventSourceInit: { fetch: (u, init) => fetch(u, { ...init, headers: { ...init?.headers, ...headers, Accept: 'text/event-stream' } }) } };
  const answer = method => request => {
    told.asked(method, request.params);
    return answers[method](request.params ?? {});
  };
  if (sdk === '1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
    const client = new Client({ name: 'lab', version: '1' }, { capabilities });
    if (!plan.plain) {
      client.setRequestHandler(types.ListRootsRequestSchema, answer('roots/list'));
      client.setRequestHandler(types.CreateMessageRequestSchema, answer('sampling/createMessage'));
      client.setRequestHandler(types.ElicitRequestSchema, answer('elicitation/create'));
    }
    client.fallbackNotificationHandler = async notification => told.heard(notification);
    const transport = plan.transport === 'sse' ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options);
    await client.connect(transport);
    return { client, transport, schema: types.ResultSchema };
  }
  const { Client, StreamableHTTPClientTransport, SSEClientTransport } = await import('@modelcontextprotocol/client');
  const { z } = await import('zod');
  const client = new Client({ name: 'lab', version: '1' }, { capabilities, versionNegotiation: { mode: sdk === 'modern' ? 'auto' : 'legacy' } });
  for (const method of plan.plain ? [] : Object.keys(answers)) client.setRequestHandler(method, answer(method));
  client.fallbackNotificationHandler = async notification => told.heard(notification);
  const transport = plan.transport === 'sse' ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options);
  await client.connect(transport);
  return { client, transport, schema: z.looseObject({}) };
}
