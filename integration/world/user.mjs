// The user of a client that is given nothing but an address: a test, which reads lines and writes lines, has the browser.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = what => process.stdout.write(JSON.stringify(what) + '\n');

// plan is the first line: what the script is to do.
export const plan = JSON.parse((await lines.next()).value);

// opens has the user open a page, and waits until they have been there.
export async function opens(address) {
  say({ open: String(address) });
  await lines.next();
}

// finish writes what was found as the last line.
export const finish = found => process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));

// listening returns a server on a port, which is free unless it is given.
export const listening = (handler, port = 0) => new Promise(resolve => { const server = createServer(handler).listen(port, '127.0.0.1', () => resolve(server)); });

// freePort finds a port for a program that listens by itself.
export async function freePort() {
  const spare = await listening(() => {});
  const { port } = spare.address();
  await new Promise(resolve => spare.close(resolve));
  return String(port);
}

// Memory keeps what a client learns, as the SDKs' documentation asks for it. Its user comes back to a port of its own.
export class Memory {
  async start() {
    this.server = await listening((request, response) => {
      const { pathname, searchParams } = new URL(request.url, this.redirectUrl);
      if (pathname !== '/callback') return void response.writeHead(404).end(); // browsers ask for an icon, too
      this.returned = searchParams;
      response.end('You are back.');
    });
    this.redirectUrl = `http://127.0.0.1:${this.server.address().port}/callback`;
    this.clientMetadata = {
      client_name: 'lab', redirect_uris: [this.redirectUrl], application_type: 'native', token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    };
    return this;
  }
  // code returns the code with which the user came back.
  code() {
    this.server.close();
    if (this.returned?.get('state') !== this.expected) throw new Error('the state came back changed');
    return this.returned.get('code');
  }
  state() { return (this.expected = crypto.randomUUID()); }
  saveState() {}
  storedState() { return this.expected; }
  clientInformation() { return this.information; }
  saveClientInformation(information) { this.information = information; }
  isClientInformationDynamicallyRegistered() { return true; }
  authorizationServerInformation() { return this.provider; }
  saveAuthorizationServerInformation(provider) { this.provider = provider; }
  tokens() { return this.saved; }
  saveTokens(tokens) { this.saved = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  async redirectToAuthorization(address) { await opens(address); }
}
