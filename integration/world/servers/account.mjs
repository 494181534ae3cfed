// account.mjs PORT: the OAuth provider of a third party, made with oidc-provider. It registers clients, takes any user, and gives
// tokens for the one resource that a client names.
import Provider from 'oidc-provider';

const [port] = process.argv.slice(2);
const provider = new Provider(`http://localhost:${port}`, {
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: { enabled: true, useGrantedResource: () => true, getResourceServerInfo: (ctx, resource) => ({ scope: 'notes', audience: resource, accessTokenFormat: 'jwt' }) },
  },
});
provider.listen(Number(port), '127.0.0.1');
