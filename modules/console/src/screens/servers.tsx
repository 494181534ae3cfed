// My servers: what the reader can connect, and has connected.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { go, Link, parameters, set } from '../router';
import { disconnect, hasAccount, useEntries, useServers } from '../session';
import { count, show, words } from '../text';
import type { Server } from '../types';
import { Empty, Problem, Screen, Tag, Waiting, type Tone } from '../ui/basics';
import { Confirm } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Time } from '../ui/time';

/** states are the words for the states of a connection. */
const states: Record<string, { tone: Tone; text: string }> = {
  connected: { tone: 'good', text: 'Connected' },
  available: { tone: 'quiet', text: 'Not connected' },
  pending: { tone: 'warning', text: 'Not finished' },
  error: { tone: 'bad', text: 'Connect again' },
};

export function State({ server }: { server: Server }): JSX.Element {
  const entry = useEntries().get(server.mcp_server_directory_id);
  if (server.status !== 'active') return <Tag tone="warning">{server.status === 'pending' ? 'Not set up yet' : 'Out of order'}</Tag>;
  if (entry && !hasAccount(entry)) return <Tag tone="good">Ready</Tag>;
  const state = states[server.connection_status];
  return <Tag tone={state?.tone ?? 'quiet'}>{state?.text ?? words(server.connection_status)}</Tag>;
}

/** Connection holds the buttons for the reader's connection to a server. */
export function Connection({ server, changed }: { server: Server; changed: () => Promise<void> }): JSX.Element | null {
  const [asking, setAsking] = useState(false);
  if (!hasAccount(useEntries().get(server.mcp_server_directory_id))) return null;
  const stored = server.connection_status === 'connected' || server.connection_status === 'error';
  const name = show(server.name, 60);
  return (
    <>
      {server.connection_status !== 'connected' && server.status === 'active' && (
        <a class="button main" href={`/connect/${server.slug}`}>{server.connection_status === 'error' ? 'Connect again' : 'Connect'}<span class="unseen"> {name}</span></a>
      )}
      {stored && <button type="button" onClick={() => { setAsking(true); }}>Disconnect<span class="unseen"> {name}</span></button>}
      {asking && (
        <Confirm title={`Disconnect ${name}?`} act="Disconnect" close={() => { setAsking(false); }} run={async () => {
          await disconnect(server);
          toast(`${name} is disconnected.`);
          await changed();
        }}>
          <p>Your account there is forgotten, at the provider too where that is possible. Calls of all your clients to this server fail until you connect again.</p>
        </Confirm>
      )}
    </>
  );
}

export function Servers(): JSX.Element {
  const servers = useServers(15);
  const entries = useEntries();
  const search = parameters.value.get('search') ?? '';
  const found = (servers.data ?? []).filter(s => `${s.name} ${s.slug}`.toLowerCase().includes(search.toLowerCase()));
  return (
    <Screen title="My servers" about="The MCP servers of your organization. Your agents use them with your own account, once you have connected it.">
      {servers.error && <Problem error={servers.error} retry={() => { void servers.reload(); }} />}
      {!servers.data && !servers.error && <Waiting rows={4} />}
      {servers.data?.length === 0 && <Empty icon="servers" title="There is no server yet"><p>An administrator of your organization adds the first one. Then you connect your account here.</p></Empty>}
      {servers.data && servers.data.length > 0 && (
        <>
          <div class="filters">
            <label class="search"><span class="unseen">Search servers</span><input type="search" placeholder="Search servers" value={search} onInput={event => { set({ search: event.currentTarget.value }); }} /></label>
            <span class="small" role="status">{count(found.length, 'server')}</span>
          </div>
          <ul class="cards">
            {found.map(s => (
              <li key={s.id} class="card">
                <div class="cardhead"><h2><Link to={`/servers/${s.slug}`}>{show(s.name, 80)}</Link></h2><State server={s} /></div>
                <p class="small description">{show(entries.get(s.mcp_server_directory_id)?.description, 160)}</p>
                <p class="small">{s.last_error ? 'The last call found it out of order.' : s.last_seen_at ? <>Last answer <Time at={s.last_seen_at} /></> : 'Nobody has used it yet'}</p>
                <div class="buttons start"><Connection server={s} changed={servers.reload} /><button type="button" class="quiet" onClick={() => { go(`/servers/${s.slug}`); }}>Details<span class="unseen"> of {show(s.name, 60)}</span></button></div>
              </li>
            ))}
          </ul>
          {found.length === 0 && <Empty icon="search" title={`No server matches “${show(search, 60)}”`}><button type="button" onClick={() => { set({ search: '' }); }}>Show all</button></Empty>}
        </>
      )}
    </Screen>
  );
}
