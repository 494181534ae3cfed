// guide.mjs URL TOKEN TOOLS legacy|modern text|url: an unmodified official client of a user who has not connected their
// account begins, lists the tools, and calls one; it writes the address that it is led to as one line, waits for a line on
// standard input, and goes on in the same conversation. With "url" the client opens pages, else it is told in words. Prints
// what it saw as JSON. TOOLS: where npm installed the clients.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [url, token, tools, era, mode] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(tools + '/').resolve(name)).href);

const sdk =
  era === 'modern'
    ? await load('@modelcontextprotocol/client')
    : {
        ...(await load('@modelcontextprotocol/sdk/client/index.js')),
        ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await load('@modelcontextprotocol/sdk/types.js')),
      };

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const connected = async address => {
  process.stdout.write(address + '\n');
  await lines.next();
};
const options = {
  capabilities: mode === 'url' ? { elicitation: { url: {} } } : {},
  ...(era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {}),
};
const client = new sdk.Client({ name: 'guide', version: '1' }, options);
let changed = false;
if (era === 'legacy') {
  client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, () => {
    changed = true;
  });
} else if (mode === 'url') {
  client.setRequestHandler('elicitation/create', async request => {
    await connected(request.params.url);
    return { action: 'accept' };
  });
}
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: 'Bearer ' + token } } }));
const instructions = client.getInstructions() ?? '';
const names = async () => (await client.listTools()).tools.map(tool => tool.name).sort();
const before = await names();
const call = () => client.callTool({ name: 'whoami', arguments: {} });
let led = era === 'modern' && mode === 'url' ? 'input_required' : 'isError';
let result;
try {
  result = await call();
  if (result.isError) {
    await connected(result.content[0].text.match(/https?:\S+/)[0]);
    result = await call();
  }
} catch (e) {
  if (e.code !== -32042) throw e;
  led = String(e.code);
  await connected(e.data.elicitations[0].url);
  result = await call();
}
for (let i = 0; era === 'legacy' && !changed && i < 100; i++) await new Promise(resolve => setTimeout(resolve, 100));
console.log(JSON.stringify({
  instructions, before, led, result: result.structuredContent?.account ?? result.content[0].text, isError: result.isError ?? false, changed,
  after: await names(), version: client.getNegotiatedProtocolVersion?.() ?? '',
}));
await client.close();
process.exit(0);
