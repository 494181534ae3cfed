// The inspector's two programs for the command line.
import { spawn } from 'node:child_process';

const packaged = '@modelcontextprotocol/inspector/clients/';

// programs returns functions that run them with arguments and return what they write as JSON; told is given all that they say
// on the way. modules: where npm installed them; env: variables besides.
export function programs(modules, env = {}) {
  const program = (script, before) => (args, told = () => {}) => {
    const child = spawn(process.execPath, [`${modules}/${packaged}${script}`, ...before, ...args], {
      env: { ...process.env, MCP_INSPECTOR_SECRET_STORE: 'file', ...env }, stdio: ['ignore', 'pipe', 'pipe'],
    });
    let written = '';
    let complaint = '';
    child.stdout.on('data', chunk => { written += chunk; });
    child.stderr.on('data', chunk => { process.stderr.write(chunk); told((complaint += chunk)); });
    return new Promise((resolve, reject) => child.on('close', code => {
      const answer = written.match(/^\{[^]*\}$/m);
      answer ? resolve(JSON.parse(answer[0])) : reject(new Error(`${script} ${args.join(' ')} ends with ${code}: ${written}${complaint}`));
    }));
  };
  const cli = program('launcher/build/index.js', ['--cli', '--format', 'json']);
  return { cli: async (...given) => { const answer = await cli(...given); return answer.result ?? answer; }, mcpdo: program('mcpdo/build/mcp-bin.js', ['--format', 'json']) };
}

const names = list => list.tools.map(tool => tool.name);

// commands are `inspector --cli`, which makes a conversation for each command. more: arguments of each.
export const commands = (cli, url, more, told) => {
  const ask = (...args) => cli([url, '--transport', 'http', ...more, ...args], told);
  return {
    tools: async () => names(await ask('--method', 'tools/list')),
    call: (name, args) => ask('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)),
    close: async () => {},
  };
};

// connection is `mcpdo`, whose daemon keeps a conversation from one command to the next.
export const connection = (mcpdo, url) => {
  const ask = (...args) => mcpdo(['--connection', url, ...args]);
  return {
    ask,
    tools: async () => names(await ask('tools/list')),
    call: (name, args) => ask('tools/call', name, JSON.stringify(args)),
    close: () => mcpdo(['daemon', 'stop']),
  };
};
