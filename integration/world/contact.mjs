// contact.mjs CLIENT: a client of others is given nothing but the address of a server at the gateway, whose user has never been
// there. It logs in, is led to the page on which its user connects an account, and calls a tool in the same conversation. The
// address comes as a line of JSON on standard input, {url, modules}. Each page that its user has to open is written as a line,
// {"open": address}; a line on standard input says that they have been there. What was found is the last line.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const [name] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const say = what => process.stdout.write(JSON.stringify(what) + '\n');

// opens has the user open a page, and waits until they have.
async function opens(address) {
  say({ open: String(address) });
  await lines.next();
}

// listening returns a server on a free port.
const listening = handler => new Promise(resolve => { const server = createServer(handler).listen(0, '127.0.0.1', () => resolve(server)); });

// freePort returns a port that nothing listens on.
async function freePort() {
  const server = await listening(() => {});
  const { port } = server.address();
  await new Promise(resolve => server.close(resolve));
  return String(port);
}

// Memory keeps what a client learns, as the SDKs' documentation asks for it. Its user comes back to a port of its own.
class Memory {
  async start() {
    this.server = await listening((request, response) => {
      this.returned = new URL(request.url, this.redirectUrl).searchParams;
      response.end('You are back.');
    });
    this.redirectUrl = `http://127.0.0.1:${this.server.address().port}/callback`;
    this.clientMetadata = {
      client_name: 'lab', redirect_uris: [this.redirectUrl], application_type: 'native', token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    };
    return this;
  }
  state() { return (this.expected = crypto.randomUUID()); }
  clientInformation() { return this.information; }
  saveClientInformation(information) { this.information = information; }
  tokens() { return this.saved; }
  saveTokens(tokens) { this.saved = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  async redirectToAuthorization(address) { await opens(address); }
}

// official connects a client of one of the TypeScript SDKs.
async function official(sdk) {
  const memory = await new Memory().start();
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
    sdk === '1'
      ? { ...(await import('@modelcontextprotocol/sdk/client/index.js')), ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')), ...(await import('@modelcontextprotocol/sdk/client/auth.js')) }
      : await import('@modelcontextprotocol/client');
  const connect = async () => {
    const client = new Client({ name: 'lab', version: '1' }, sdk === '1' ? {} : { versionNegotiation: { mode: sdk === 'modern' ? 'auto' : 'legacy' } });
    const transport = new StreamableHTTPClientTransport(new URL(plan.url), { authProvider: memory });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !memory.returned) throw error;
      if (memory.returned.get('state') !== memory.expected) throw new Error('the state came back changed');
      await transport.finishAuth(sdk === '1' ? memory.returned.get('code') : memory.returned);
    }
  };
  const client = (await connect()) ?? (await connect());
  memory.server.close();
  return client;
}

// bridge connects by a program that speaks over standard input and output with us. It tells its user on standard error what to open.
async function bridge(script, asks) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const port = await freePort();
  const transport = new StdioClientTransport({ command: process.execPath, args: [`${plan.modules}/${script}`, plan.url, port], env: process.env, stderr: 'pipe' });
  let told = '';
  let asked = false;
  transport.stderr.on('data', chunk => {
    process.stderr.write(chunk);
    const found = (told += chunk).match(asks);
    if (found && !asked) {
      asked = true;
      opens(found[1]);
    }
  });
  const client = new Client({ name: 'lab', version: '1' });
  await client.connect(transport, { timeout: 120_000 });
  return client;
}

// inspector asks by the command line of the inspector: each command is a conversation of its own, and all share a login.
async function inspector() {
  const callback = await freePort();
  const run = (...args) => new Promise((resolve, reject) => {
    const program = `${plan.modules}/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;
    const child = spawn(process.execPath, [program, '--cli', plan.url, '--transport', 'http', '--callback-url', `http://127.0.0.1:${callback}/oauth/callback`, ...args], {
      env: { ...process.env, MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' }, // as on a terminal
    });
    child.stdin.end();
    let said = '';
    let written = '';
    let asked = false;
    child.stdout.on('data', chunk => { written += chunk; process.stderr.write(chunk); });
    child.stderr.on('data', chunk => {
      process.stderr.write(chunk);
      const found = (said += chunk).match(/(http\S+\/auth\?\S+)\s/);
      if (found && !asked) {
        asked = true;
        opens(found[1]);
      }
    });
    child.on('close', () => {
      try {
        resolve(JSON.parse(written));
      } catch {
        reject(new Error(`the inspector wrote ${written} ${said}`));
      }
    });
  });
  return {
    listTools: () => run('--method', 'tools/list'),
    callTool: ({ name, arguments: args }) => run('--method', 'tools/call', '--tool-name', name, ...Object.entries(args).flatMap(([k, v]) => ['--tool-arg', `${k}=${v}`])),
    close: async () => {},
  };
}

const clients = {
  inspector,
  'sdk 1': () => official('1'),
  'sdk 2': () => official('2'),
  'sdk 2 modern': () => official('modern'),
  'mcp-remote': () => bridge('mcp-remote/dist/proxy.js', /Please authorize this client by visiting:\s*(http\S+)/),
};

const client = await clients[name]();
const tools = async () => (await client.listTools()).tools.map(tool => tool.name).sort();
const greet = async () => JSON.stringify(await client.callTool({ name: 'greet', arguments: { name: 'Alice' } }));
// The inspector calls no tool that is not listed.
const ask = async () => (name === 'inspector' ? JSON.stringify(await client.callTool({ name: 'connect_account', arguments: {} })) : greet());
const found = { before: await tools(), led: await ask() };
const page = found.led.match(/http[^\s"\\]+\/connect\/[a-z0-9-]+/);
if (page) await opens(page[0]);
found.result = await greet();
found.after = await tools();
await client.close().catch(() => {});
process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));
