// codex.mjs: Codex as a client of contact.mjs. Its model is this script: it asks for the calls.
import { spawn } from 'node:child_process';
import { finish, listening, opens, plan } from './user.mjs';

const found = { led: 'words' };
const codex = `${plan.modules}/.bin/codex`;

// run runs it in its home; told is given all that it says on the way.
function run(args, told = () => {}) {
  const child = spawn(codex, args, { env: { ...process.env, CODEX_HOME: process.env.HOME }, cwd: process.env.HOME, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => { process.stderr.write(chunk); told((said += chunk)); });
  return new Promise((resolve, reject) => child.on('close', code => (code ? reject(new Error(`codex ${args.join(' ')} ends with ${code}: ${said}`)) : resolve(said))));
}

let last; // the call that the model asked for last

const text = said => ({ type: 'message', role: 'assistant', id: 'msg_1', content: [{ type: 'output_text', text: said }] });

// offered lists the tools of the server that a request offers, with the way to call each.
function offered(tools = []) {
  const names = new Map();
  for (const tool of tools) {
    if (tool.type === 'namespace' && tool.name.includes('lab')) for (const own of tool.tools) names.set(own.name, { name: own.name, namespace: tool.name });
    else if (tool.name?.startsWith('mcp__lab__')) names.set(tool.name.slice('mcp__lab__'.length), { name: tool.name });
  }
  return names;
}

// next returns the answer of the model. It calls the tool that leads to the page, and sends its user there. Codex lists the tools
// once for a conversation, so that the model calls the server's own tool in the next one.
async function next({ tools, input }) {
  const names = offered(tools);
  const result = last && JSON.stringify(input.find(item => item.call_id === last.call_id && item.type.endsWith('_output'))?.output);
  if (result) {
    const page = result.match(/http[^\s"\\]+\/connect\/[a-z0-9-]+/);
    if (last.tool === plan.tool) found.result = result;
    else if (page) await opens(page[0]);
    last = undefined;
    return text(result);
  }
  const tool = names.has(plan.tool) ? plan.tool : 'connect_account';
  found[tool === plan.tool ? 'after' : 'before'] = [...names.keys()].sort();
  if (!names.has(tool)) throw new Error(`it offers ${JSON.stringify(tools)}`);
  last = { tool, call_id: 'call_' + tool };
  return { type: 'function_call', call_id: last.call_id, ...names.get(tool), arguments: JSON.stringify(tool === plan.tool ? plan.arguments : {}) };
}

const model = await listening(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  if (!request.url.startsWith('/v1/responses')) return void response.writeHead(404).end();
  const item = await next(JSON.parse(body)).catch(error => text(String(error)));
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const usage = { input_tokens: 11, input_tokens_details: null, output_tokens: 6, output_tokens_details: null, total_tokens: 17 };
  for (const event of [
    { type: 'response.created', response: { id: 'resp_1' } }, { type: 'response.output_item.done', item },
    { type: 'response.completed', response: { id: 'resp_1', usage } },
  ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
});

let asked = false;
const login = told => {
  const page = told.match(/(http[^\s\x07\x1b]+resource=[^\s\x07\x1b]+)[\s\x07\x1b]/);
  if (page && !asked) {
    asked = true;
    opens(page[1]);
  }
};
await run(['mcp', 'add', 'lab', '--url', plan.url], login); // which logs its user in, too
if (!(await run(['mcp', 'list'])).includes('OAuth')) throw new Error('it is not logged in');
const provider = `model_providers.lab={name="lab",base_url="http://127.0.0.1:${model.address().port}/v1",wire_api="responses"}`;
for (const prompt of ['Connect the account.', 'Greet Alice.']) await run(['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '-c', 'model="gpt-5"', '-c', 'model_provider="lab"', '-c', provider, prompt]);
model.close();
model.closeAllConnections();
finish(found);
