// exchange.mjs: the grant of RFC 8693 for an oidc-provider, which documents registerGrantType for it and has none of its own. It
// gives tokens for the audience payroll, for access tokens of the gateway's and for ID tokens of the gateway's login client.
import { errors } from 'oidc-provider';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const type = word => 'urn:ietf:params:oauth:token-type:' + word;

export function exchange(provider, issuer, gate) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const audiences = { [type('access_token')]: gate, [type('id_token')]: 'durward' };
  const handler = async ctx => {
    const { audience, requested_token_type, scope, subject_token, subject_token_type } = ctx.oidc.params;
    if (requested_token_type !== type('access_token') || !audiences[subject_token_type]) throw new errors.InvalidRequest('unsupported type of token');
    if (audience !== 'payroll') throw new errors.InvalidTarget('unknown audience');
    const subject = await jwtVerify(subject_token, keys, { issuer, audience: audiences[subject_token_type] }).catch(error => {
      throw new errors.InvalidGrant(error.message);
    });
    const token = new provider.AccessToken({ accountId: subject.payload.sub, client: ctx.oidc.client, gty: 'token_exchange', scope });
    token.resourceServer = new provider.ResourceServer(audience, { scope: 'mcp', audience, accessTokenFormat: 'jwt' });
    ctx.oidc.entity('AccessToken', token);
    ctx.body = { access_token: await token.save(), issued_token_type: requested_token_type, token_type: 'Bearer', expires_in: token.expiration, scope };
  };
  provider.registerGrantType('urn:ietf:params:oauth:grant-type:token-exchange', handler, ['audience', 'requested_token_type', 'scope', 'subject_token', 'subject_token_type']);
}
