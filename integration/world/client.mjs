// client.mjs NAME: a client of others does with a server what its users do. What to do it with comes as a line of JSON on
// standard input: url and token of the server, console (a token with which its user decides on held calls). After the first
// half it writes a line, and goes on in the same conversation when another line comes. What was found is its last line.
import { createInterface } from 'node:readline';

const [name] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const headers = { Authorization: 'Bearer ' + plan.token };

// textOf is what a model gets to read of a tool's answer.
const textOf = answer => (typeof answer === 'string' ? answer : JSON.stringify(answer));

// official is the client of one of the TypeScript SDKs.
async function official(sdk) {
  const { connect } = await import('./official.mjs');
  const nothing = () => {};
  return bare((await connect(sdk, { url: plan.url, plain: true }, headers, { asked: nothing, heard: nothing })).client);
}

// bare is a client of the SDKs under the names of this script.
const bare = client => ({
  tools: async () => (await client.listTools()).tools.map(t => t.name),
  call: async (name, args) => client.callTool({ name, arguments: args }),
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
      tools: async () => Object.keys(await client.tools()),
      call: async (name, args) => (await client.tools())[name].execute(args, { toolCallId: 'lab', messages: [] }),
      close: () => client.close(),
    };
  },
  async '@langchain/mcp-adapters'() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({ mcpServers: { lab: { transport: 'http', url: plan.url, headers } }, useStandardContentBlocks: true });
    return {
      tools: async () => (await client.getTools()).map(t => t.name),
      call: async (name, args) => (await client.getTools()).find(t => t.name === name).invoke(args),
      close: () => client.close(),
    };
  },
  async '@openai/agents'() {
    const { MCPServerStreamableHttp } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ name: 'lab', url: plan.url, requestInit: { headers } });
    await server.connect();
    return { tools: async () => (await server.listTools()).map(t => t.name), call: (name, args) => server.callTool(name, args), close: () => server.close() };
  },
  async '@mastra/mcp'() {
    const { MCPClient } = await import('@mastra/mcp');
    const client = new MCPClient({ servers: { lab: { url: new URL(plan.url), requestInit: { headers } } } });
    const tools = async () => Object.fromEntries(Object.entries(await client.listTools()).map(([name, tool]) => [name.replace(/^lab_/, ''), tool]));
    return { tools: async () => Object.keys(await tools()), call: async (name, args) => (await tools())[name].execute(args, {}), close: () => client.disconnect() };
  },
};

const client = await clients[name]();
const call = async (tool, args) => {
  try {
    return textOf(await client.call(tool, args));
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
await client.close().catch(() => {});
process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));
