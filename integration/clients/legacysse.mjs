// legacysse.mjs URL TOKEN TOOLS: the official client of the HTTP+SSE transport of revision 2024-11-05 lists tools, calls
// them, gets progress and answers a request of the server's, and prints what it got. TOOLS: where npm installed it.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, token, tools] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(tools + '/').resolve('@modelcontextprotocol/sdk/' + name)).href);
const { Client } = await load('client/index.js');
const { SSEClientTransport } = await load('client/sse.js');
const { ElicitRequestSchema } = await load('types.js');

const client = new Client({ name: 'legacy', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async request => ({ action: 'accept', content: { answer: request.params.message } }));
await client.connect(new SSEClientTransport(new URL(url), { requestInit: { headers: { Authorization: 'Bearer ' + token } } }));

const progress = [];
const listed = await client.listTools();
const echoed = await client.callTool({ name: 'echo', arguments: { text: 'grüezi' } });
const stepped = await client.callTool({ name: 'steps', arguments: {} }, undefined, { onprogress: p => progress.push(p.message) });
const asked = await client.callTool({ name: 'ask', arguments: { text: 'really?' } });
console.log(JSON.stringify({
  tools: listed.tools.map(t => t.name).sort(), echo: echoed.content[0].text, steps: stepped.content[0].text, progress, ask: asked.content[0].text,
}));
await client.close();
