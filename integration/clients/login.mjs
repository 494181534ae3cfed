// login.mjs URL USER TOOLS legacy|modern: an unmodified official client is given nothing but the URL of an MCP server behind
// the gateway. It finds out where to log in, registers, logs in and calls the tool whoami, whose answer is printed.
// The user's browser, which the client only knows an address for, is played by browse(). TOOLS: where npm installed them.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, user, tools, era] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(tools + '/').resolve(name)).href);

const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  era === 'modern'
    ? await load('@modelcontextprotocol/client')
    : {
        ...(await load('@modelcontextprotocol/sdk/client/index.js')),
        ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await load('@modelcontextprotocol/sdk/client/auth.js')),
      };

// browse opens the provider's login page and picks the user; it ends where the provider sends the browser back to.
async function browse(address) {
  const page = await (await fetch(address)).text();
  const ticket = page.match(/name="ticket" value="([^"]+)"/)?.[1];
  if (!ticket) throw new Error(`no login form at ${address}: ${page}`);
  const answer = await fetch(address.origin + address.pathname, {
    method: 'POST', redirect: 'manual', body: new URLSearchParams({ ticket, user }),
  });
  if (answer.status !== 303) throw new Error(`login: status ${answer.status}: ${await answer.text()}`);
  return new URL(answer.headers.get('location')).searchParams;
}

// The client's own memory, as the SDK's documentation asks for it.
class Memory {
  redirectUrl = 'http://127.0.0.1:1/callback';
  clientMetadata = { client_name: `official client, ${era}`, redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
  registered = 0;
  state() { return (this.expected = crypto.randomUUID()); }
  clientInformation() { return this.information; }
  saveClientInformation(information) { this.information = information; this.registered++; }
  tokens() { return this.saved; }
  saveTokens(tokens) { this.saved = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  async redirectToAuthorization(address) { this.returned = await browse(address); }
}

const memory = new Memory();
const options = era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {};
async function connect() {
  const client = new Client({ name: 'login', version: '1' }, options);
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: memory });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || !memory.returned) throw error;
    if (memory.returned.get('state') !== memory.expected) throw new Error('the state came back changed');
    await (era === 'modern' ? transport.finishAuth(memory.returned) : transport.finishAuth(memory.returned.get('code')));
    return undefined;
  }
}

const client = (await connect()) ?? (await connect());
if (!client) throw new Error('the client is still not let in');
const result = await client.callTool({ name: 'whoami', arguments: {} });
if (result.isError || memory.registered !== 1) throw new Error(JSON.stringify({ result, registered: memory.registered }));
console.log(result.content[0].text);
console.log(client.getNegotiatedProtocolVersion?.() ?? '');
await client.close();
