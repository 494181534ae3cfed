// The way to the API: a token that lives in memory only, requests, and errors in words.
import { signal } from '@preact/signals';

/** loggedOut is true once the browser's session has ended: the page can only offer to log in. */
export const loggedOut = signal(false);

/** logoutForm is the token of the form that logs the browser out. */
export const logoutForm = signal('');

/** Failure is an error of the API, in words for the reader. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly request: string,
    readonly reference: string,
    /** login is the address at which the reader logs in anew before the gateway does it; "" for none. */
    readonly login = '',
  ) {
    super(message);
  }

  /** advice says what the reader can do. */
  get advice(): string {
    if (this.login) return '';
    switch (this.status) {
      case 0: return 'Look at your connection to the gateway, then try again.';
      case 401: return 'Log in again.';
      case 403: return 'Ask an administrator of your organization for this right.';
      case 404: return 'It may have been deleted meanwhile.';
      case 429: return 'Wait a minute, then try again.';
      case 503: return 'Try again in a moment.';
    }
    return this.status >= 500 ? 'Try again. If it stays so, give an administrator the line below.' : 'Change what you sent, then try again.';
  }
}

interface Token {
  access_token: string;
  user: string;
  expires_in: number;
  logout: string;
}

let token = '';
let goodUntil = 0;
let reader = '';
let asking: Promise<void> | undefined;

/** authorize gets a token unless there is one that stays good for a while. Requests at the same time share it. */
async function authorize(): Promise<void> {
  if (token && performance.now() < goodUntil) return;
  asking ??= (async () => {
    try {
      const made = await read<Token>(await send('POST', '/console/token'), 'POST /console/token');
      reader ||= made.user;
      if (made.user !== reader) throw new Failure(401, 'Somebody else is logged in with this browser by now. Load the page again.', 'POST /console/token', '');
      token = made.access_token;
      goodUntil = performance.now() + Math.max(made.expires_in - 30, 5) * 1000;
      logoutForm.value = made.logout;
    } catch (error) {
      token = '';
      if (error instanceof Failure && error.status === 401) loggedOut.value = true;
      throw error;
    } finally {
      asking = undefined;
    }
  })();
  return asking;
}

async function send(method: string, path: string, body?: unknown, follow?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: follow ? 'text/event-stream' : 'application/json' };
  if (token && path !== '/console/token') headers['Authorization'] = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(path, { method, headers, body: body === undefined ? null : JSON.stringify(body), cache: 'no-store', redirect: 'error', signal: follow ?? null });
  } catch {
    throw new Failure(0, 'The gateway does not answer.', `${method} ${path}`, '');
  }
}

/** asked is the act that waits until the reader has logged in anew; undefined for none. */
export const asked = signal<{ login: string; go: () => void; leave: () => void } | undefined>(undefined);

/** relogin waits until the reader has logged in anew. It reports false when they leave it. */
function relogin(login: string): Promise<boolean> {
  asked.value?.leave();
  return new Promise(resolve => {
    const end = (done: boolean) => (): void => { asked.value = undefined; resolve(done); };
    asked.value = { login, go: end(true), leave: end(false) };
  });
}

/** worded finds the words in an error of the API, in each of its forms. */
function worded(body: unknown): string {
  if (typeof body !== 'object' || body === null) return '';
  const { message, detail } = body as { message?: unknown; detail?: unknown };
  if (typeof message === 'string') return message;
  if (!Array.isArray(detail)) return '';
  return (detail as { loc?: unknown[]; msg?: string }[])
    .map(d => `${(d.loc ?? []).slice(1).join('.') || 'request'}: ${d.msg ?? ''}`).join('; ');
}

async function read<T>(response: Response, request: string): Promise<T> {
  const text = await response.text();
  let body: unknown;
  try {
    body = text ? JSON.parse(text) : undefined;
  } catch {
    body = undefined;
  }
  if (!response.ok) {
    const reference = [`${response.status}`, response.headers.get('X-Request-Id') ?? '', new Date().toISOString()].filter(Boolean).join(' · ');
    const login = (body as { details?: { login_url?: unknown } } | undefined)?.details?.login_url;
    throw new Failure(response.status, worded(body) || `The gateway answers with status ${response.status}.`, request, reference,
      typeof login === 'string' && login.startsWith('/login?') ? login : '');
  }
  return body as T;
}

/** call sends a request to the API. Before an act that needs a fresh login, the reader logs in, and it is sent again. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  for (;;) {
    try {
      return await once<T>(method, path, body);
    } catch (error) {
      if (!(error instanceof Failure) || !error.login || !await relogin(error.login)) throw error;
      token = '';
    }
  }
}

const named = (method: string, path: string): string => `${method} ${path.split('?')[0] ?? path}`;

/** once sends a request. A token that has ended meanwhile is replaced once. */
const once = async <T>(method: string, path: string, body?: unknown): Promise<T> => read<T>(await answered(method, path, body), named(method, path));

async function answered(method: string, path: string, body?: unknown, follow?: AbortSignal): Promise<Response> {
  await authorize();
  let response = await send(method, path, body, follow);
  if (response.status === 401) {
    token = '';
    await authorize();
    response = await send(method, path, body, follow);
    if (response.status === 401) loggedOut.value = true;
  }
  return response;
}

/** follow reads an address of the API as an event stream until it ends, and gives the data of each event to seen. */
export async function follow<T>(path: string, seen: (data: T) => void, until: AbortSignal): Promise<void> {
  const response = await answered('GET', path, undefined, until);
  if (!response.ok || !response.body) return read(response, named('GET', path));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = event.split('\n').filter(line => line.startsWith('data: ')).map(line => line.slice(6)).join('\n');
      if (data) seen(JSON.parse(data) as T);
    }
  }
}

/** query writes the parameters of an address, without those that say nothing. */
export function query(parameters: Record<string, string | number | null | undefined>): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') written.set(name, String(value));
  }
  const text = written.toString();
  return text && `?${text}`;
}
