// fastmcp.mjs PORT [stateless]: a server made with FastMCP, as its README has one made: a bit of everything that it can do.
import { FastMCP, imageContent, audioContent, UserError } from 'fastmcp';
import { z } from 'zod';

const [port, mode] = process.argv.slice(2);
const server = new FastMCP({ name: 'fastmcp', version: '1.0.0', instructions: 'Ask what you like.', roots: { enabled: true } });
const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==', 'base64');

server.addTool({ name: 'add', description: 'Adds.', parameters: z.object({ a: z.number(), b: z.number() }),
  annotations: { readOnlyHint: true, title: 'Addition' }, execute: async ({ a, b }) => String(a + b) });
server.addTool({ name: 'image', description: 'A picture.', execute: async () => imageContent({ buffer: pixel }) });
server.addTool({ name: 'progress', description: 'Tells how far it is.', execute: async (_, { reportProgress }) => {
  for (let i = 1; i <= 4; i++) await reportProgress({ progress: i, total: 4, message: `step ${i}` });
  return 'done';
} });
server.addTool({ name: 'stream', description: 'Streams.', annotations: { streamingHint: true }, execute: async (_, { streamContent }) => {
  for (const text of ['one ', 'two ', 'three']) await streamContent({ type: 'text', text });
} });
server.addTool({ name: 'log', description: 'Logs.', execute: async (_, { log }) => {
  log.info('said', { by: 'fastmcp' });
  log.warn('warned');
  return 'logged';
} });
server.addTool({ name: 'refuse', description: 'Does not want to.', execute: async () => { throw new UserError('not like this'); } });
server.addTool({ name: 'large', description: '5 MB.', execute: async () => 'large '.repeat(5_000_000 / 6) });
server.addTool({ name: 'several', description: 'Several contents.', execute: async () => ({ content: [
  { type: 'text', text: 'one' }, { type: 'resource', resource: { uri: 'file:///log', mimeType: 'text/plain', text: 'two' } }, await imageContent({ buffer: pixel }),
] }) });
server.addResource({ uri: 'file:///log', name: 'Log', mimeType: 'text/plain', load: async () => ({ text: 'what was logged' }) });
server.addResource({ uri: 'file:///binary', name: 'Binary', mimeType: 'application/octet-stream', load: async () => ({ blob: pixel.toString('base64') }) });
server.addResourceTemplate({ uriTemplate: 'file:///logs/{name}', name: 'Logs', mimeType: 'text/plain',
  arguments: [{ name: 'name', required: true, complete: async value => ({ values: ['alpha', 'beta'].filter(v => v.startsWith(value)) }) }],
  load: async ({ name }) => ({ text: `log of ${name}` }) });
server.addPrompt({ name: 'greet', description: 'Greets.', arguments: [{ name: 'whom', required: true, enum: ['Alice', 'Bob'] }], load: async ({ whom }) => `Greet ${whom}.` });

await server.start({ transportType: 'httpStream', httpStream: { port: Number(port), host: '127.0.0.1', stateless: mode === 'stateless' } });
