// client.mjs NAME: a client of others does with a server what its users do. What to do it with comes as a line of JSON on
// standard input: url and token of the server, console (a token with which its user decides on held calls). After the first
// half it writes a line, and goes on in the same conversation when another line comes. Last it makes a long call, writes a line,
// and cancels the call when another line comes. What was found is its last line.
import { createInterface } from 'node:readline';
import { commands, connection, programs } from './inspector.mjs';

const [name] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const headers = { Authorization: 'Bearer ' + plan.token };

// textOf returns the text of a tool's answer that a model reads.
const textOf = answer => (typeof answer === 'string' ? answer : JSON.stringify(answer));

// official is the client of one of the TypeScript SDKs.
async function official(sdk) {
  const { connect } = await import('./official.mjs');
  const nothing = () => {};
  const { client } = await connect(sdk, { url: plan.url, plain: true }, headers, { asked: nothing, heard: nothing });
  return bare(client, sdk !== '1');
}

// bare is a client of the SDKs under the names of this script. Calls end with a signal.
const bare = (client, newer) => ({
  cancels: true,
  tools: async () => (await client.listTools()).tools.map(t => t.name),
  call: async (name, args, signal) => client.callTool({ name, arguments: args }, ...(newer ? [] : [undefined]), { signal }),
  close: () => client.close(),
});

// bridge is a program that speaks with the server, and over standard input and output with us.
async function bridge(script, ...args) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const client = new Client({ name: 'lab', version: '1' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [`${plan.modules}/${script}`, ...args], env: process.env, stderr: 'inherit' }));
  return bare(client);
}

const clients = {
  'sdk 1': () => official('1'),
  'sdk 2': () => official('2'),
  'sdk 2 modern': () => official('modern'),
  'mcp-remote': () => bridge('mcp-remote/dist/proxy.js', plan.url, '--header', 'Authorization: ' + headers.Authorization),
  supergateway: () => bridge('supergateway/dist/index.js', '--streamableHttp', plan.url, '--oauth2Bearer', plan.token, '--logLevel', 'none'),
  async '@ai-sdk/mcp'() {
    const { createMCPClient } = await import('@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url: plan.url, headers } });
    return {
      cancels: true,
      tools: async () => Object.keys(await client.tools()),
      call: async (name, args, abortSignal) => (await client.tools())[name].execute(args, { toolCallId: 'lab', messages: [], abortSignal }),
      close: () => client.close(),
    };
  },
  async '@langchain/mcp-adapters'() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({ mcpServers: { lab: { transport: 'http', url: plan.url, headers } }, useStandardContentBlocks: true });
    return {
      cancels: true,
      tools: async () => (await client.getTools()).map(t => t.name),
      call: async (name, args, signal) => (await client.getTools()).find(t => t.name === name).invoke(args, { signal }),
      close: () => client.close(),
    };
  },
  async '@openai/agents'() {
    const { MCPServerStreamableHttp } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ name: 'lab', url: plan.url, requestInit: { headers } });
    await server.connect();
    return {
      cancels: true,
      tools: async () => (await server.listTools()).map(t => t.name),
      call: (name, args, signal) => server.callTool(name, args, null, { signal }),
      close: () => server.close(),
    };
  },
  async '@mastra/mcp'() {
    const { MCPClient } = await import('@mastra/mcp');
    const client = new MCPClient({ servers: { lab: { url: new URL(plan.url), requestInit: { headers } } } });
    const tools = async () => Object.fromEntries(Object.entries(await client.listTools()).map(([name, tool]) => [name.replace(/^lab_/, ''), tool]));
    return {
      cancels: true,
      tools: async () => Object.keys(await tools()),
      call: async (name, args, abortSignal) => (await tools())[name].execute(args, { abortSignal }),
      close: () => client.disconnect(),
    };
  },
  async 'mcp-use'() {
    const { MCPClient } = await import('mcp-use/client');
    const client = new MCPClient({ mcpServers: { lab: { url: plan.url, headers } } });
    const session = await client.createSession('lab');
    return {
      cancels: true,
      tools: async () => (await session.listTools()).map(t => t.name),
      call: (name, args, signal) => session.callTool(name, args, { signal }),
      close: () => client.closeAllSessions(),
    };
  },
  'inspector --cli': async () => commands(programs(plan.modules).cli, plan.url, ['--header', 'Authorization: ' + headers.Authorization]),
  async 'inspector mcpdo'() {
    const { mcpdo } = programs(plan.modules);
    await mcpdo(['connect', '--transport', 'http', '--elicit', 'off', '--header', 'Authorization: ' + headers.Authorization, '--', plan.url]);
    return connection(mcpdo, plan.url);
  },
};

const client = await clients[name]();
const call = async (tool, args, signal) => {
  try {
    return textOf(await client.call(tool, args, signal));
  } catch (error) {
    return 'error: ' + (error.message ?? error) + (error.data ? JSON.stringify(error.data) : '');
  }
};
const found = {};
found.tools = (await client.tools()).sort();
found.echo = await call('echo', { message: 'hello' });
found.denied = await call('get-env', {});
found.held = await call('get-sum', { a: 1, b: 2 });
const page = found.held.match(/approvals\/([0-9a-f-]{36})/);
if (page) {
  const answer = await fetch(`${new URL(plan.url).origin}/api/approvals/${page[1]}/approve`, { method: 'POST', headers: { Authorization: 'Bearer ' + plan.console } });
  found.decided = answer.status;
}
found.approved = await call('get-sum', { a: 1, b: 2 });
console.log('half');
await lines.next();
found.after = await call('echo', { message: 'again' });
if (client.cancels) {
  const controller = new AbortController();
  const long = call('trigger-long-running-operation', { duration: 600, steps: 600 }, controller.signal);
  console.log('runs');
  await lines.next();
  controller.abort(new Error('enough'));
  found.canceled = await long;
  found.still = await call('echo', { message: 'still here' });
}
await client.close().catch(() => {});
process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));
