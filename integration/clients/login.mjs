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

const back = 'http://127.0.0.1:1/callback';
const cookies = new Map();

// open opens an address, or sends a form there, and goes on where redirects lead: to a page, or back to the client.
async function open(address, form) {
  for (;;) {
    const answer = await fetch(address, {
      method: form ? 'POST' : 'GET', redirect: 'manual', body: form && new URLSearchParams(form),
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    });
    for (const set of answer.headers.getSetCookie()) {
      const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
      cookies.set(name, value);
    }
    const next = answer.headers.get('location') ?? answer.headers.get('refresh')?.split('url=')[1];
    if (!next) return { address, text: await answer.text() };
    address = new URL(next, address);
    form = undefined;
    if (address.href.startsWith(back)) return { returned: address.searchParams };
  }
}

// browse logs the user in, agrees to the client, and connects no account.
async function browse(address) {
  let page = await open(address);
  while (!page.returned) {
    const ticket = page.text.match(/name="ticket" value="([^"]+)"/)?.[1];
    const question = page.text.match(/action="(\/oauth\/authorize[^"]*)"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"/);
    if (ticket) page = await open(new URL(page.address.pathname, page.address), { ticket, user });
    else if (question) {
      const decision = page.text.includes('value="later"') ? 'later' : 'approve';
      page = await open(new URL(question[1].replaceAll('&amp;', '&'), page.address), { form: question[2], decision });
    } else throw new Error(`neither a login nor a question at ${page.address}: ${page.text}`);
  }
  return page.returned;
}

// The client's own memory, as the SDK's documentation asks for it.
class Memory {
  redirectUrl = back;
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
