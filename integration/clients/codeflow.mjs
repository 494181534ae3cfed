// codeflow.mjs GATEWAY TOOLS REDIRECT: openid-client, unmodified, registers, and logs a user in with an authorization code
// and PKCE, as a public client and as confidential ones; it refreshes, and revokes. It writes each authorization request as
// one line, and reads on standard input the address at which the browser comes back. What it saw is printed, one a line.
// TOOLS: where npm installed it.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [gateway, tools, redirect] = process.argv.slice(2);
const openid = await import(pathToFileURL(createRequire(tools + '/').resolve('openid-client')).href);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const options = { execute: [openid.allowInsecureRequests], algorithm: 'oauth2' };

// status returns how the gateway's API answers a token.
async function status(token) {
  const response = await fetch(`${gateway}/api/servers`, { headers: { authorization: `Bearer ${token}` } });
  await response.arrayBuffer();
  return response.status;
}

// refused returns the error code of a promise that must fail.
async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    return error.error ?? error.code;
  }
  return 'nothing';
}

for (const [method, auth] of Object.entries({
  none: openid.None(),
  client_secret_basic: undefined,
  client_secret_post: undefined,
})) {
  const metadata = { redirect_uris: [redirect], client_name: 'openid-client', grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: method };
  const registered = await openid.dynamicClientRegistration(new URL(gateway), metadata, auth, options);
  const { client_id: id, client_secret: secret } = registered.clientMetadata();
  const proof = { none: openid.None(), client_secret_basic: openid.ClientSecretBasic(secret), client_secret_post: openid.ClientSecretPost(secret) }[method];
  const config = await openid.discovery(new URL(gateway), id, undefined, proof, options);

  const pkceCodeVerifier = openid.randomPKCECodeVerifier();
  const expectedState = openid.randomState();
  const address = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
    resource: gateway,
  });
  process.stdout.write(address.href + '\n');
  const back = new URL((await lines.next()).value);
  const mixedUp = new URL(back);
  mixedUp.searchParams.set('iss', 'https://elsewhere.example.com');
  const iss = await refused(openid.authorizationCodeGrant(config, mixedUp, { pkceCodeVerifier, expectedState }));
  const tokens = await openid.authorizationCodeGrant(config, back, { pkceCodeVerifier, expectedState });
  const before = await status(tokens.access_token);
  const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token);
  const rotated = renewed.refresh_token !== tokens.refresh_token;
  const after = await status(renewed.access_token);
  await openid.tokenRevocation(config, renewed.refresh_token, { token_type_hint: 'refresh_token' });
  const ended = await status(renewed.access_token);
  const again = await refused(openid.refreshTokenGrant(config, renewed.refresh_token));
  process.stdout.write(`${method}: mix-up ${iss}, ${tokens.token_type} ${tokens.expires_in} ${before}, renewed ${rotated} ${after}, revoked ${ended} ${again}\n`);
}
process.exit(0);
