// approvals.mjs URL TOKEN TOOLS legacy|modern accept|decline|page|page-decline|none ID CONSOLE: an unmodified official
// client calls the tool delete_issue, which a rule wants its user's approval for. Its user accepts or declines what they are
// asked; with "page" the client opens pages only, on which its user approves (with the token CONSOLE), with "page-decline"
// they do not want it opened; with "none" the client cannot ask anybody. Prints what was asked, for how many milliseconds
// the call took, and what the tool said. TOOLS: where npm installed the clients.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, token, tools, era, word, id, consoleToken] = process.argv.slice(2);
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
const approve = async page => {
  const address = new URL(page);
  address.pathname = '/api' + address.pathname + '/approve';
  const answer = await fetch(address, { method: 'POST', headers: { Authorization: 'Bearer ' + consoleToken } });
  if (!answer.ok) throw new Error(`approving: ${answer.status} ${await answer.text()}`);
};
const answer = async request => {
  asked.push(request.params.message);
  switch (word) {
    case 'accept':
      return { action: 'accept', content: {} };
    case 'page':
      await approve(request.params.url);
      return { action: 'accept' };
  }
  return { action: 'decline' };
};
const capabilities = word === 'none' ? {} : { elicitation: word.startsWith('page') ? { url: {} } : {} };
const options = { capabilities, ...(era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {}) };
const client = new sdk.Client({ name: 'approvals', version: '1' }, options);
if (word !== 'none') client.setRequestHandler(era === 'modern' ? 'elicitation/create' : sdk.ElicitRequestSchema, answer);
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: 'Bearer ' + token } } }));
const progress = [];
const call = () => client.callTool({ name: 'delete_issue', arguments: { id: Number(id) } }, ...(era === 'modern' ? [] : [undefined, { onprogress: p => progress.push(p) }]));
const began = Date.now();
let result;
try {
  result = await call();
} catch (e) {
  if (era === 'modern' || e.code !== -32042) throw e;
  for (const page of e.data.elicitations) {
    asked.push(page.message);
    await approve(page.url);
  }
  result = await call();
}
console.log(JSON.stringify({ asked, took: Date.now() - began, text: result.content[0].text, isError: result.isError ?? false, version: client.getNegotiatedProtocolVersion?.() ?? '' }));
await client.close();
