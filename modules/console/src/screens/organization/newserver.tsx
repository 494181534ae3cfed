// A new server: from the catalogue in one step, or by its address. The gateway tries it, and says what to do next.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { everything, useLoad } from '../../load';
import type { Entry, Test } from '../../organization';
import { Link, parameters, set } from '../../router';
import { show, words } from '../../text';
import { Empty, Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Dialog } from '../../ui/dialog';
import { Tabs } from '../../ui/tabs';

interface Created {
  id: string;
  test: Test | null;
}

const providers: [string, string][] = [
  ['oauth2', 'OAuth: each user connects an account'], ['bearer_token', 'A token that each user types in'], ['api_key', 'An API key that each user types in'],
  ['basic_auth', 'Name and password of each user'], ['none', 'No account'],
];

/** Tried tells what a test has found. */
export function Tried({ test }: { test: Test }): JSX.Element {
  return (
    <div class="panel">
      <p>{test.reachable ? <Tag tone={test.error ? 'warning' : 'good'}>The server answers</Tag> : <Tag tone="bad">The server does not answer</Tag>}</p>
      <p>{show(test.message, 600)}</p>
      {test.error && test.error !== test.message && <p class="small">{show(test.error, 600)}</p>}
      <dl>
        {test.authentication && <><dt>Account</dt><dd>{words(test.authentication)}{test.issuer && <> at <span class="mono">{show(test.issuer, 200)}</span></>}</dd></>}
        {test.tools !== null && <><dt>Tools</dt><dd>{test.tools}</dd></>}
        {test.revisions.length > 0 && <><dt>Protocol</dt><dd>{show(test.revisions.join(', '))}{test.transport && ` (${show(test.transport)})`}</dd></>}
      </dl>
    </div>
  );
}

/** Add names the server of an entry, creates it, and shows what the test has found. */
function Add({ entry, close }: { entry: Entry; close: () => void }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [made, setMade] = useState<Created & { slug: string }>();
  const add = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const created = await call<Created>('POST', '/api/servers', { name: String(new FormData(form).get('name')), mcp_server_directory_id: entry.id });
      const server = await call<{ slug: string }>('GET', `/api/servers/${created.id}`);
      setMade({ ...created, slug: server.slug });
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  if (made) {
    return (
      <Dialog title="The server is there" close={close}>
        {made.test ? <Tried test={made.test} /> : <p>It was not tried.</p>}
        <p>Nobody can call it yet: a policy has to allow its tools.</p>
        <div class="buttons">
          <Link to={`/organization/servers/${encodeURIComponent(made.slug)}`} class="button">Look at it</Link>
          <Link to={`/organization/policies/new?server=${made.id}`} class="button main">Write its policy</Link>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={`Add ${show(entry.name, 60)}`} close={close}>
      <form onSubmit={event => { event.preventDefault(); void add(event.currentTarget); }}>
        <label for="servername">Name</label>
        <input id="servername" name="name" required maxLength={100} defaultValue={entry.name} autocomplete="off" aria-describedby="servernamehint" />
        <p id="servernamehint" class="small hint">Users see it. Its address at the gateway is made from it: <span class="mono">/mcp/…</span></p>
        <p class="small hint">The gateway calls <span class="mono">{show(entry.url, 160)}</span> once now, to see whether it answers.</p>
        {error && <Problem error={error} />}
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class="main" disabled={busy}>{busy ? 'Trying the server…' : 'Add the server'}</button></div>
      </form>
    </Dialog>
  );
}

function Catalogue(): JSX.Element {
  const entries = useLoad<Entry[]>('/api/server-directory', 0, path => everything<Entry>(path));
  const [adding, setAdding] = useState<Entry>();
  const asked = parameters.value.get('search') ?? '';
  const found = entries.data?.filter(e => `${e.name} ${e.description} ${e.url} ${e.categories.join(' ')}`.toLowerCase().includes(asked.toLowerCase()));
  return (
    <>
      <form class="filters search" onSubmit={event => { event.preventDefault(); }}>
        <label><span class="unseen">Search the catalogue</span><input type="search" value={asked} placeholder="Search the catalogue" onInput={event => { set({ search: event.currentTarget.value }); }} /></label>
        {found && <span class="small">{found.length} of {entries.data?.length}</span>}
      </form>
      {entries.error && <Problem error={entries.error} retry={() => { void entries.reload(); }} />}
      {!entries.data && !entries.error && <Waiting rows={4} />}
      {found?.length === 0 && <Empty icon="search" title="Nothing in the catalogue matches"><p>A server that is not in it is added by its address.</p><Link to="/organization/servers/new?by=address" class="button">By its address</Link></Empty>}
      <div class="cards">
        {found?.map(e => (
          <article key={e.id} class="card">
            <div class="cardhead"><h2>{show(e.name, 60)}</h2>{e.organization_id && <Tag tone="quiet">Yours</Tag>}</div>
            <p class="small">{show(e.description, 160)}</p>
            <p class="small mono">{show(e.url, 80)}</p>
            <div class="buttons start"><button type="button" onClick={() => { setAdding(e); }}>Add<span class="unseen"> {show(e.name, 60)}</span></button></div>
          </article>
        ))}
      </div>
      {adding && <Add entry={adding} close={() => { setAdding(undefined); }} />}
    </>
  );
}

function ByAddress(): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [entry, setEntry] = useState<Entry>();
  const next = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    const provider = String(fields.get('provider'));
    setBusy(true);
    setError(undefined);
    try {
      setEntry(await call<Entry>('POST', '/api/server-directory', {
        name: String(fields.get('name')), url: String(fields.get('url')), protocol: String(fields.get('protocol')), provider, requires_auth: provider !== 'none',
      }));
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  return (
    <Section title="By its address">
      <form class="panel form" onSubmit={event => { event.preventDefault(); void next(event.currentTarget); }}>
        <label for="entryname">Name</label>
        <input id="entryname" name="name" required maxLength={100} autocomplete="off" />
        <label for="entryurl">Address</label>
        <input id="entryurl" name="url" type="url" required placeholder="https://mcp.example.com/mcp" autocomplete="off" />
        <label for="entryprotocol">Protocol</label>
        <select id="entryprotocol" name="protocol"><option value="mcp">MCP</option><option value="sse">an event stream (SSE)</option></select>
        <label for="entryprovider">Account</label>
        <select id="entryprovider" name="provider">{providers.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select>
        <p class="small hint">Service accounts, tokens of your identity provider, and certificates of your own are set through the API.</p>
        {error && <Problem error={error} />}
        <div class="buttons start"><button type="submit" class="main" disabled={busy}>Go on</button></div>
      </form>
      {entry && <Add entry={entry} close={() => { setEntry(undefined); }} />}
    </Section>
  );
}

export function NewServer(): JSX.Element {
  const by = parameters.value.get('by') === 'address' ? 'address' : 'catalogue';
  return (
    <>
      <p class="back"><Link to="/organization/servers">Servers</Link></p>
      <Screen title="Add a server" about="The gateway tries a server when it is added. Nobody can call it before a policy allows it.">
        <Tabs label="Ways to add a server" open={by} tabs={[{ id: 'catalogue', title: 'Catalogue', to: '/organization/servers/new' }, { id: 'address', title: 'By its address', to: '/organization/servers/new?by=address' }]} />
        {by === 'address' ? <ByAddress /> : <Catalogue />}
      </Screen>
    </>
  );
}
