// The inspector's two programs for the command line, as clients of contact.mjs.
import { spawn } from 'node:child_process';
import { freePort, opens, plan } from './user.mjs';

const launcher = '@modelcontextprotocol/inspector/clients/launcher/build/index.js';
const mcpdo = '@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js';
const port = await freePort();
const environment = { ...process.env, MCP_INSPECTOR_SECRET_STORE: 'file', MCP_OAUTH_CALLBACK_URL: `http://127.0.0.1:${port}/oauth/callback` };

// program runs one of them and returns what it writes as JSON; told is given all that it says on the way.
function program(script, args, env = {}, told = () => {}) {
  const child = spawn(process.execPath, [`${plan.modules}/${script}`, ...args], { env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let written = '';
  let complaint = '';
  child.stdout.on('data', chunk => { written += chunk; });
  child.stderr.on('data', chunk => { process.stderr.write(chunk); told((complaint += chunk)); });
  return new Promise((resolve, reject) => child.on('close', code => {
    const answer = written.match(/^\{[^]*\}$/m);
    answer ? resolve(JSON.parse(answer[0])) : reject(new Error(`${script} ${args.join(' ')} ends with ${code}: ${written}${complaint}`));
  }));
}

// commands is `inspector --cli`, which makes a conversation for each command. It logs in at the first.
export function commands() {
  let asked = false;
  const ask = async (...args) => {
    const answer = await program(launcher, ['--cli', plan.url, '--transport', 'http', '--format', 'json', ...args], { MCP_AUTO_OPEN_ENABLED: 'true' }, told => {
      const page = told.match(/Please navigate to: (http\S+)\n/);
      if (page && !asked) {
        asked = true;
        opens(page[1]);
      }
    });
    return answer.result ?? answer;
  };
  const tools = async () => (await ask('--method', 'tools/list')).tools.map(tool => tool.name);
  const run = (name, args) => ask('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args));
  return {
    tools,
    // It calls nothing but what is listed.
    call: async () => ((await tools()).includes(plan.tool) ? run(plan.tool, plan.arguments) : run('connect_account', {})),
    close: async () => {},
  };
}

// connections is `mcpdo`, whose daemon keeps a conversation from one command to the next, and opens pages.
export async function connections(found) {
  const ask = (...args) => program(mcpdo, ['--connection', plan.url, '--format', 'json', ...args]);
  const begun = await program(mcpdo, ['--format', 'json', 'connect', '--transport', 'http', plan.url]);
  await opens(begun.authUrl);
  await ask('connections/show');
  return {
    tools: async () => (await ask('tools/list')).tools.map(tool => tool.name),
    // It calls nothing but what is listed. When the user has been to the page, it makes the same call once more.
    call: async () => {
      const { elicitationPending: pending } = await ask('tools/call', 'connect_account', '{}');
      found.led = pending.mode;
      await opens(pending.url);
      found.again = await ask('elicitation/respond', pending.elicitationId, '--done');
      return ask('tools/call', plan.tool, JSON.stringify(plan.arguments));
    },
    close: () => program(mcpdo, ['--format', 'json', 'daemon', 'stop']),
  };
}
