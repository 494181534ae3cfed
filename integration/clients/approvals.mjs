// approvals.mjs URL TOKEN TOOLS legacy|modern accept|decline|none ID: an unmodified official client calls the tool
// delete_issue, which a rule wants its user's approval for. Its user accepts or declines what they are asked; with "none"
// the client cannot ask anybody. Prints what was asked and what the tool said. TOOLS: where npm installed the clients.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, token, tools, era, word, id] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(tools + '/').resolve(name)).href);

const sdk =
  era === 'modern'
    ? await load('@modelcontextprotocol/client')
    : {
        ...(await load('@modelcontextprotocol/sdk/client/index.js')),
        ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await load('@modelcontextprotocol/sdk/types.js')),
      };

const asked = [];
const answer = async request => {
  asked.push(request.params.message);
  return word === 'accept' ? { action: 'accept', content: {} } : { action: 'decline' };
};
const options = { capabilities: word === 'none' ? {} : { elicitation: {} }, ...(era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {}) };
const client = new sdk.Client({ name: 'approvals', version: '1' }, options);
if (word !== 'none') client.setRequestHandler(era === 'modern' ? 'elicitation/create' : sdk.ElicitRequestSchema, answer);
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: 'Bearer ' + token } } }));
const progress = [];
const result = await client.callTool({ name: 'delete_issue', arguments: { id: Number(id) } }, ...(era === 'modern' ? [] : [undefined, { onprogress: p => progress.push(p) }]));
console.log(JSON.stringify({ asked, text: result.content[0].text, isError: result.isError ?? false, version: client.getNegotiatedProtocolVersion?.() ?? '' }));
await client.close();
