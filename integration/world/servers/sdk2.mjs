// sdk2.mjs PORT sessions|stateless [ISSUER]: a server made with @modelcontextprotocol/server. With "sessions" it speaks the revisions
// of 2025 as they were meant, with sessions and resumption; with "stateless" it is what the SDK's own handler makes of it:
// 2026-07-28, and 2025 without sessions. It demands tokens of ISSUER for itself, by what the SDK has for that.
import { createPublicKey, randomUUID, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import {
  McpServer, OAuthError, OAuthErrorCode, ResourceTemplate, completable, createMcpHandler, getOAuthProtectedResourceMetadataUrl, inputRequired, oauthMetadataResponse, requireBearerAuth,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

const [port, mode, issuer] = process.argv.slice(2);
const blob = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const said = text => ({ content: [{ type: 'text', text }] });
let updated = () => {}; // tells all who listen that the clock has changed

function make() {
  const server = new McpServer({ name: 'sdk2', version: '1.0.0', title: 'A server of SDK 2' },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } }, instructions: 'Ask what you like.' });
  server.registerTool('echo', { description: 'Says it again.', inputSchema: z.object({ message: z.string() }) }, async ({ message }) => said(message));
  server.registerTool('large', { description: '5 MB.' }, async () => said('large '.repeat(5_000_000 / 6)));
  server.registerTool('structured', { description: 'Structured.', inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ city: z.string(), celsius: z.number() }) },
    async ({ city }) => ({ ...said('{}'), structuredContent: { city, celsius: 21.5 } }));
  server.registerTool('progress', { description: 'Tells how far it is.' }, async ctx => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= 4; progress++) {
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 4, message: `step ${progress}` } });
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    return said('done');
  });
  server.registerTool('log', { description: 'Logs.' }, async ctx => {
    await ctx.mcpReq.log('warning', { said: 'warned' }, 'sdk2');
    return said('logged');
  });
  const asks = (name, description, request, show) => server.registerTool(name, { description }, async ctx => {
    const answer = ctx.mcpReq.inputResponses?.asked;
    return answer === undefined ? inputRequired({ inputRequests: { asked: request } }) : said(show(answer));
  });
  asks('form', 'Asks for a form.', inputRequired.elicit({ message: 'How many?', requestedSchema: { type: 'object', properties: { many: { type: 'integer', minimum: 3 } }, required: ['many'] } }), JSON.stringify);
  asks('page', 'Sends to a page.', inputRequired.elicitUrl({ message: 'Open it.', url: 'https://example.test/page', elicitationId: 'page' }), JSON.stringify);
  asks('sample', 'Asks a model.', inputRequired.createMessage({ maxTokens: 10, messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }] }), JSON.stringify);
  asks('roots', 'Asks for roots.', inputRequired.listRoots(), JSON.stringify);
  server.registerTool('tick', { description: 'Changes the clock.' }, async () => {
    updated('lab://clock');
    return said('ticked');
  });
  // An MCP App: a tool with a page of its own.
  server.registerTool('app', { description: 'Shows itself.', _meta: { ui: { resourceUri: 'ui://lab/app.html' }, 'ui/resourceUri': 'ui://lab/app.html' } }, async () => said('shown'));
  server.registerResource('app', 'ui://lab/app.html', { mimeType: 'text/html;profile=mcp-app', _meta: { ui: { csp: { connectDomains: ['https://example.test'] }, prefersBorder: true } } },
    async uri => ({ contents: [{ uri: uri.href, mimeType: 'text/html;profile=mcp-app', text: '<!doctype html><title>Lab</title><p>An app.', _meta: { ui: { prefersBorder: true } } }] }));
  server.registerResource('clock', 'lab://clock', { mimeType: 'text/plain' }, async uri => ({ contents: [{ uri: uri.href, text: 'noon' }] }));
  server.registerResource('pixel', 'lab://pixel', { mimeType: 'image/png' }, async uri => ({ contents: [{ uri: uri.href, mimeType: 'image/png', blob }] }));
  server.registerResource('note', new ResourceTemplate('lab://notes/{name}', { list: undefined, complete: { name: value => ['alpha', 'beta'].filter(v => v.startsWith(value)) } }),
    { mimeType: 'text/plain' }, async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `note ${name}` }] }));
  server.registerPrompt('greet', { description: 'Greets.', argsSchema: z.object({ whom: completable(z.string(), value => ['Alice', 'Bob'].filter(v => v.startsWith(value))) }) },
    ({ whom }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${whom}.` } }] }));
  return server;
}

const events = new Map(); // of all sessions, for resumption
const eventStore = {
  async storeEvent(stream, message) {
    const id = `${stream}_${events.size}`;
    events.set(id, { stream, message });
    return id;
  },
  async getStreamIdForEventId(id) { return events.get(id)?.stream; },
  async replayEventsAfter(last, { send }) {
    const stream = events.get(last)?.stream;
    let after = false;
    for (const [id, event] of events) {
      if (after && event.stream === stream) await send(id, event.message);
      after ||= id === last;
    }
    return stream;
  },
};

const sessions = new Map();
async function serveSession(request, response) {
  let transport = sessions.get(request.headers['mcp-session-id'])?.transport;
  if (!transport) {
    if (request.headers['mcp-session-id']) return response.writeHead(404).end();
    const server = make();
    const subscribed = new Set();
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));
    transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, eventStore,
      onsessioninitialized: id => sessions.set(id, { transport, server, subscribed }), onsessionclosed: id => sessions.delete(id) });
    await server.connect(transport);
  }
  await transport.handleRequest(request, response);
}

// guarded is a handler for whoever has a token.
async function guarded(handler) {
  const resource = new URL(`http://127.0.0.1:${port}/mcp`);
  const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const verifyAccessToken = async token => {
    const { keys } = await (await fetch(oauthMetadata.jwks_uri)).json();
    const [header, claims, signature] = token.split('.');
    const { kid } = JSON.parse(Buffer.from(header, 'base64url'));
    const key = keys.find(one => one.kid === kid);
    if (!key || !verify('sha256', `${header}.${claims}`, createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64url'))) throw new OAuthError(OAuthErrorCode.InvalidToken, 'no token');
    const { aud, client_id: clientId, exp: expiresAt, scope } = JSON.parse(Buffer.from(claims, 'base64url'));
    return { token, clientId, expiresAt, scopes: scope.split(' '), resource: new URL(aud) };
  };
  const gate = requireBearerAuth({ verifier: { verifyAccessToken }, requiredScopes: ['notes'], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource), expectedResource: resource });
  return {
    async fetch(request) {
      const metadata = oauthMetadataResponse(request, { oauthMetadata, resourceServerUrl: resource, scopesSupported: ['notes'] });
      if (metadata) return metadata;
      const authInfo = await gate(request);
      return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
    },
  };
}

let serve = serveSession;
if (mode === 'stateless') {
  const handler = createMcpHandler(make);
  updated = uri => handler.notify.resourceUpdated(uri);
  serve = toNodeHandler(issuer ? await guarded(handler) : handler);
} else {
  updated = uri => {
    for (const { server, subscribed } of sessions.values()) if (subscribed.has(uri)) server.server.sendResourceUpdated({ uri });
  };
}
createServer((request, response) => serve(request, response)).listen(Number(port), '127.0.0.1');
