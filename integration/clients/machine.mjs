// machine.mjs GATEWAY SLUG TOOLS CLIENT SECRET KEY: unmodified published clients log in without a person, each with the
// secret and with the private key (a JWK), and call the tool echo of an MCP server behind the gateway. What each of them did
// is printed, one a line. TOOLS: where npm installed them.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [gateway, slug, tools, id, secret, key] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(tools + '/').resolve(name)).href);
const url = `${gateway}/mcp/${slug}`;
const privateKey = JSON.parse(key);

const eras = {
  legacy: {
    ...(await load('@modelcontextprotocol/sdk/client/index.js')),
    ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
    ...(await load('@modelcontextprotocol/sdk/client/auth-extensions.js')),
  },
  modern: await load('@modelcontextprotocol/client'),
};

// call calls the tool with a client of an era.
async function call(era, options) {
  const { Client, StreamableHTTPClientTransport } = eras[era];
  const client = new Client({ name: 'machine', version: '1' }, era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  const result = await client.callTool({ name: 'echo', arguments: { text: 'said' } });
  await client.close();
  return result.content[0].text;
}

for (const [era, { ClientCredentialsProvider, PrivateKeyJwtProvider }] of Object.entries(eras)) {
  const known = { clientId: id, expectedIssuer: gateway };
  for (const [way, authProvider] of Object.entries({
    secret: new ClientCredentialsProvider({ ...known, clientSecret: secret }),
    key: new PrivateKeyJwtProvider({ ...known, privateKey, algorithm: 'ES256' }),
  })) console.log(`mcp ${era} ${way} ${await call(era, { authProvider })}`);
}

const openid = await load('openid-client');
const signer = await crypto.subtle.importKey('jwk', privateKey, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']);
for (const [way, auth] of Object.entries({
  basic: openid.ClientSecretBasic(secret),
  post: openid.ClientSecretPost(secret),
  key: openid.PrivateKeyJwt({ key: signer, kid: 'k' }),
})) {
  const config = await openid.discovery(new URL(gateway), id, undefined, auth, { execute: [openid.allowInsecureRequests], algorithm: 'oauth2' });
  const tokens = await openid.clientCredentialsGrant(config, { resource: url });
  const requestInit = { headers: { authorization: `Bearer ${tokens.access_token}` } };
  console.log(`openid-client ${way} ${tokens.token_type} ${tokens.expires_in} ${await call('modern', { requestInit })}`);
}
