// claude.mjs: Claude Code as a client of contact.mjs. Its model is this script, behind the gateway: it asks for the calls. Besides,
// the plan has model (the port to listen on), gateway and key (of the models), and terminal (a program that gives it one).
import { spawn } from 'node:child_process';
import { finish, listening, opens, plan } from './user.mjs';

const found = { led: 'words' };
const env = {
  ...process.env, ANTHROPIC_BASE_URL: plan.gateway, ANTHROPIC_AUTH_TOKEN: plan.key, ANTHROPIC_MODEL: 'claude', ANTHROPIC_SMALL_FAST_MODEL: 'claude',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', ENABLE_TOOL_SEARCH: 'false',
};
const command = [process.execPath, `${plan.modules}/@anthropic-ai/claude-code/cli-wrapper.cjs`];

// claude runs it in its home; told is given all that it says on the way. With a terminal it thinks that somebody sits there.
function claude(args, told = () => {}, terminal = false) {
  const [program, ...rest] = terminal ? ['script', '-qec', [...command, ...args].join(' '), '/dev/null'] : [...command, ...args];
  const child = spawn(program, rest, { env, cwd: process.env.HOME, stdio: [terminal ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => { process.stderr.write(chunk); told((said += chunk)); });
  return new Promise((resolve, reject) => child.on('close', code => (code ? reject(new Error(`claude ${args.join(' ')} ends with ${code}: ${said}`)) : resolve(said))));
}

const spoken = text => [{ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }, { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }];
const called = (id, name, input) => [
  { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id, name: prefix + name, input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) } },
];
const prefix = 'mcp__lab__';
let last; // the call that the model asked for last
let calls = 0;

// next returns the answer of the model. The model calls the tool that leads to the page, sends its user there, and calls the
// server's own tool as soon as that is listed.
async function next({ tools = [], messages, system }) {
  const names = tools.map(tool => tool.name).filter(name => name.startsWith(prefix)).map(name => name.slice(prefix.length)).sort();
  if (names.length === 0) return spoken('A title');
  const blocks = messages.flatMap(message => message.content);
  const result = last && JSON.stringify(blocks.find(block => block.tool_use_id === last.id)?.content);
  if (last?.tool === plan.tool) {
    found.result = result;
    return spoken(result);
  }
  found.before ??= names;
  // 2.1.332 declines to open pages when nobody sits there. What the server said at the beginning has the address, too.
  const page = (result?.includes('canceled') ? JSON.stringify([system, messages]) : result)?.match(/http[^\s"\\]+\/connect\/[a-z0-9-]+/);
  if (page) await opens(page[0]);
  if (++calls > 100) throw new Error(`the tools stay as they were, and it says ${result}`);
  const shown = names.includes(plan.tool);
  if (shown) found.after = names;
  last = { id: 'toolu_' + calls, tool: shown ? plan.tool : 'connect_account' };
  return called(last.id, last.tool, shown ? plan.arguments : {});
}

const model = await listening(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const block = await next(JSON.parse(text)).catch(error => spoken(String(error)));
  const reason = block[0].content_block.type === 'text' ? 'end_turn' : 'tool_use';
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const event of [
    { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'real', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 11, output_tokens: 1 } } },
    ...block, { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 6 } }, { type: 'message_stop' },
  ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}, plan.model);

await claude(['mcp', 'add', '--transport', 'http', 'lab', plan.url]);
const before = await claude(['mcp', 'list']);
if (!before.includes('Needs authentication')) throw new Error('it says before the login: ' + before);
let asked = false;
await claude(['mcp', 'login', 'lab'], told => {
  const page = told.match(/(http[^\s\x07\x1b]+resource=[^\s\x07\x1b]+)[\s\x07\x1b]/); // it may be a link of the terminal's
  if (page && !asked) {
    asked = true;
    opens(page[1]);
  }
}, true);
const after = await claude(['mcp', 'list']);
if (!after.includes('Connected')) throw new Error('it says after the login: ' + after);
found.printed = await claude(['-p', 'Greet Alice.', '--allowedTools', 'mcp__lab']);
model.close();
model.closeAllConnections();
finish(found);
