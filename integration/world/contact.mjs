// contact.mjs CLIENT: a client of others is given nothing but the address of a server at the gateway, whose user has never been
// there. It logs in, is led to the page on which its user connects an account, and calls a tool in the same conversation. What
// to do comes as a line of JSON on standard input: {url, modules, tool, arguments}. Each page that its user has to open is
// written as a line, {"open": address}; a line on standard input says that they have been there. What was found is the last line.
import { commands, connection, programs } from './inspector.mjs';
import { Memory, finish, freePort, listening, opens, plan } from './user.mjs';

const [name] = process.argv.slice(2);
const found = { led: 'words' };
let changed; // resolved when the client has heard that the tools are other ones

// official connects a client of one of the TypeScript SDKs. One with pages opens the address that it is given beside an answer;
// the others are told it in words.
async function official(sdk, pages) {
  const memory = await new Memory().start();
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
    sdk === '1'
      ? { ...(await import('@modelcontextprotocol/sdk/client/index.js')), ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')), ...(await import('@modelcontextprotocol/sdk/client/auth.js')) }
      : await import('@modelcontextprotocol/client');
  const capabilities = pages ? { elicitation: { url: {} } } : {};
  const connect = async () => {
    const client = new Client({ name: 'lab', version: '1' }, { capabilities, ...(sdk === '1' ? {} : { versionNegotiation: { mode: sdk === 'modern' ? 'auto' : 'legacy' } }) });
    if (pages && sdk !== '1') {
      client.setRequestHandler('elicitation/create', async request => {
        found.led = 'input_required';
        await opens(request.params.url);
        return { action: 'accept' };
      });
    }
    if (sdk !== 'modern') changed = new Promise(resolve => { client.fallbackNotificationHandler = async ({ method }) => method === 'notifications/tools/list_changed' && resolve(); });
    const transport = new StreamableHTTPClientTransport(new URL(plan.url), { authProvider: memory });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !memory.returned) throw error;
      const code = memory.code();
      await transport.finishAuth(sdk === '1' ? code : memory.returned);
    }
  };
  return bare((await connect()) ?? (await connect()));
}

// bare is a client of the SDKs under the names of this script.
function bare(client) {
  const call = () => client.callTool({ name: plan.tool, arguments: plan.arguments });
  return {
    tools: async () => (await client.listTools()).tools.map(tool => tool.name),
    call: () => call().catch(async error => {
      if (error.code !== -32042) throw error;
      found.led = String(error.code);
      await opens(error.data.elicitations[0].url);
      return call();
    }),
    version: () => client.getNegotiatedProtocolVersion?.(),
    close: () => client.close(),
  };
}

// bridge connects by a program that speaks over standard input and output with us. It tells its user on standard error what to open.
async function bridge(script, asks) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const transport = new StdioClientTransport({ command: process.execPath, args: [`${plan.modules}/${script}`, plan.url, await freePort()], env: process.env, stderr: 'pipe' });
  let told = '';
  let asked = false;
  transport.stderr.on('data', chunk => {
    process.stderr.write(chunk);
    const page = (told += chunk).match(asks);
    if (page && !asked) {
      asked = true;
      opens(page[1]);
    }
  });
  const client = new Client({ name: 'lab', version: '1' });
  await client.connect(transport, { timeout: 120_000 });
  return bare(client);
}

// listed is a client that calls nothing but what it has listed: a model is shown the tool that leads to the page.
const listed = ({ tools, run, close }) => ({
  tools: async () => Object.keys(await tools()),
  call: async () => {
    const all = await tools();
    return all[plan.tool] ? run(all[plan.tool], plan.tool, plan.arguments) : run(all.connect_account, 'connect_account', {});
  },
  close,
});

// login returns the way to connect a client that takes the SDK's provider of OAuth: the first attempt sends the user to log in,
// and the second has the token.
async function login(attempt) {
  const { auth } = await import('@modelcontextprotocol/sdk/client/auth.js');
  const memory = await new Memory().start();
  return () => attempt(memory).catch(async error => {
    if (!memory.returned) throw error;
    await auth(memory, { serverUrl: plan.url, authorizationCode: memory.code() });
    return attempt(memory);
  });
}

const clients = {
  'sdk 1': () => official('1'),
  'sdk 1, pages': () => official('1', true),
  'sdk 2': () => official('2'),
  'sdk 2, pages': () => official('2', true),
  'sdk 2 modern': () => official('modern'),
  'sdk 2 modern, pages': () => official('modern', true),
  'sdk 2 modern, OAuth': () => official('modern'),
  'sdk 2 modern, pages, OAuth': () => official('modern', true),
  'mcp-remote': () => bridge('mcp-remote/dist/proxy.js', /Please authorize this client by visiting:\s*(http\S+)/),
  async '@ai-sdk/mcp'() {
    const { createMCPClient, auth } = await import('@ai-sdk/mcp');
    const memory = await new Memory().start();
    const connect = () => createMCPClient({ transport: { type: 'http', url: plan.url, authProvider: memory } });
    const client = await connect().catch(async () => {
      await auth(memory, { serverUrl: plan.url, authorizationCode: memory.code(), callbackState: memory.returned.get('state'), callbackIssuer: memory.returned.get('iss') ?? undefined });
      return connect();
    });
    return listed({ tools: () => client.tools(), run: (tool, _, args) => tool.execute(args, { toolCallId: 'lab', messages: [] }), close: () => client.close() });
  },
  async '@langchain/mcp-adapters'() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const connect = await login(async authProvider => {
      const client = new MultiServerMCPClient({ mcpServers: { lab: { transport: 'http', url: plan.url, authProvider } } });
      await client.getTools();
      return client;
    });
    const client = await connect();
    let led = false;
    return listed({
      // It keeps the list of tools that it has read, so its user begins a conversation anew after connecting the account.
      tools: async () => {
        if (led) await client.close();
        return Object.fromEntries((await client.getTools()).map(tool => [tool.name, tool]));
      },
      run: (tool, name, args) => {
        led = name === 'connect_account';
        return tool.invoke(args).catch(error => error.message);
      },
      close: () => client.close(),
    });
  },
  async '@openai/agents'() {
    const { MCPServerStreamableHttp } = await import('@openai/agents');
    const connect = await login(async authProvider => {
      const server = new MCPServerStreamableHttp({ name: 'lab', url: plan.url, authProvider });
      await server.connect();
      return server;
    });
    const server = await connect();
    return listed({
      tools: async () => Object.fromEntries((await server.listTools()).map(tool => [tool.name, tool])),
      run: (_, name, args) => server.callTool(name, args), close: () => server.close(),
    });
  },
  async '@mastra/mcp'() {
    const { MCPClient, MCPOAuthClientProvider } = await import('@mastra/mcp');
    // It registers no client by itself, and is given one that the provider knows.
    const redirectUrl = `http://127.0.0.1:${await freePort()}/callback`;
    const authProvider = new MCPOAuthClientProvider({
      redirectUrl, clientMetadata: { client_name: 'lab', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' }, clientInformation: { client_id: 'first-call' },
      onRedirectToAuthorization: address => void opens(address),
    });
    const client = new MCPClient({ servers: { lab: { url: new URL(plan.url), authProvider } } });
    await client.authenticate('lab');
    return listed({
      tools: async () => Object.fromEntries(Object.entries(await client.listTools()).map(([name, tool]) => [name.replace(/^lab_/, ''), tool])),
      run: (tool, _, args) => tool.execute(args, {}).catch(error => error.message), close: () => client.disconnect(),
    });
  },
  async 'mcp-use'() {
    const { MCPClient } = await import('mcp-use/client');
    const { NodeOAuthClientProvider } = await import('mcp-use/auth/node');
    const { auth } = await import('@modelcontextprotocol/sdk/client/auth.js');
    const authProvider = await NodeOAuthClientProvider.create(plan.url, { baseDir: process.env.HOME, preferredPort: Number(await freePort()), openBrowser: opens, clientUri: 'https://lab.example.test' });
    const client = new MCPClient({ mcpServers: { lab: { url: plan.url, authProvider } } });
    const session = await client.createSession('lab').catch(async error => {
      if (error.code !== 401) throw error;
      await auth(authProvider, { serverUrl: plan.url, authorizationCode: await authProvider.getAuthorizationCode() });
      return client.createSession('lab');
    });
    return listed({
      tools: async () => Object.fromEntries((await session.listTools()).map(tool => [tool.name, tool])),
      run: (_, name, args) => session.callTool(name, args), close: () => client.closeAllSessions(),
    });
  },
  async 'inspector --cli'() {
    let asked = false;
    const { cli } = programs(plan.modules, { MCP_AUTO_OPEN_ENABLED: 'true', MCP_OAUTH_CALLBACK_URL: `http://127.0.0.1:${await freePort()}/oauth/callback` });
    const { tools, call, close } = commands(cli, plan.url, [], told => {
      const page = told.match(/Please navigate to: (http\S+)\n/);
      if (page && !asked) {
        asked = true;
        opens(page[1]);
      }
    });
    // It calls nothing but what is listed.
    return { tools, close, call: async () => ((await tools()).includes(plan.tool) ? call(plan.tool, plan.arguments) : call('connect_account', {})) };
  },
  // It opens pages, and makes the same call once more when its user has been there.
  async 'inspector mcpdo'() {
    const { mcpdo } = programs(plan.modules, { MCP_OAUTH_CALLBACK_URL: `http://127.0.0.1:${await freePort()}/oauth/callback` });
    const { ask, tools, call, close } = connection(mcpdo, plan.url);
    await opens((await mcpdo(['connect', '--transport', 'http', plan.url])).authUrl);
    await ask('connections/show');
    return { tools, close, call: async () => {
      const { elicitationPending: pending } = await call('connect_account', {});
      found.led = pending.mode;
      await opens(pending.url);
      await ask('elicitation/respond', pending.elicitationId, '--done');
      return call(plan.tool, plan.arguments);
    } };
  },
};

const client = await clients[name]();
const tools = async () => (await client.tools()).sort();
const call = async () => JSON.stringify(await client.call());
try {
  found.before = await tools();
  found.result = await call();
  const page = found.result.match(/http[^\s"\\]+\/connect\/[a-z0-9-]+/);
  if (page) {
    await opens(page[0]);
    found.result = await call();
  }
  if (page || found.led !== 'words') await changed; // an account was connected
  found.after = await tools();
  found.version = client.version?.() ?? '';
} finally {
  await client.close().catch(() => {});
}
finish(found);
