// My clients: how to set one up, and those that act for the reader.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api';
import { everything, useLoad } from '../load';
import { Link, parameters, set } from '../router';
import { useServers } from '../session';
import { show } from '../text';
import type { Session, Snippets as SnippetsType } from '../types';
import { Empty, Problem, Screen, Section, Tag, Waiting } from '../ui/basics';
import { Code } from '../ui/code';
import { Confirm } from '../ui/dialog';
import { Table } from '../ui/table';
import { Time } from '../ui/time';
import { toast } from '../ui/toast';

/** Snippets shows the text with which each client is set up for a server. */
export function Snippets({ slug }: { slug: string }): JSX.Element {
  const found = useLoad<SnippetsType>(`/api/clients/snippets?server=${encodeURIComponent(slug)}`);
  const [chosen, setChosen] = useState('');
  if (found.error) return <Problem error={found.error} retry={() => { void found.reload(); }} />;
  if (!found.data) return <Waiting />;
  const clients = found.data.data;
  const client = clients.find(c => c.client === chosen) ?? clients[0];
  return (
    <div class="panel">
      <div class="choices" role="group" aria-label="Client">
        {clients.map(c => <button key={c.client} type="button" class="quiet" aria-pressed={c.client === client?.client} onClick={() => { setChosen(c.client); }}>{show(c.name)}</button>)}
      </div>
      {client && <><p class="small">{show(client.where, 400)}</p><Code text={client.text} label={`the settings for ${client.name}`} /></>}
    </div>
  );
}

export function Clients(): JSX.Element {
  const sessions = useLoad<Session[]>('/api/sessions', 15, path => everything<Session>(path));
  const servers = useServers();
  const [ending, setEnding] = useState<Session>();
  const slug = parameters.value.get('server') || servers.data?.[0]?.slug || '';
  return (
    <Screen title="My clients" about="The programs that act for you. Each logged in here, and you agreed to it.">
      <Section title="Logged in">
        {sessions.error && <Problem error={sessions.error} retry={() => { void sessions.reload(); }} />}
        {!sessions.data && !sessions.error && <Waiting />}
        {sessions.data?.length === 0 && <Empty icon="clients" title="No client acts for you"><p>Set one up with the text below. It asks you to log in at its first call.</p></Empty>}
        {sessions.data && sessions.data.length > 0 && (
          <Table label="Your clients" rows={sessions.data} id={s => s.id} from="/api/sessions" columns={[
            { title: 'Client', kind: 'wide', cell: s => <><strong>{show(s.client_name || s.client_id, 80)}</strong> {s.current && <Tag tone="quiet">This browser</Tag>}<br /><span class="small mono">{show(s.resource, 120)}</span></> },
            { title: 'Since', cell: s => <Time at={s.created_at} /> },
            { title: 'Last used', cell: s => <Time at={s.used_at} /> },
            { title: 'Ends', cell: s => <Time at={s.expires_at} /> },
            { title: 'Acts', kind: 'end', cell: s => !s.current && <button type="button" class="quiet danger" onClick={() => { setEnding(s); }}>Log out<span class="unseen"> {show(s.client_name || s.client_id, 80)}</span></button> },
          ]} />
        )}
      </Section>
      <Section title="Set up a client">
        {servers.data?.length === 0 && <p class="muted">There is no server to set a client up for yet.</p>}
        {slug && (
          <>
            <div class="filters"><label for="snippetserver">For the server</label>
              <select id="snippetserver" value={slug} onChange={event => { set({ server: event.currentTarget.value }); }}>{servers.data?.map(s => <option key={s.id} value={s.slug}>{show(s.name, 80)}</option>)}</select>
              <Link to={`/servers/${slug}`}>About it</Link></div>
            <Snippets slug={slug} />
          </>
        )}
      </Section>
      {ending && (
        <Confirm title={`Log out ${show(ending.client_name || ending.client_id, 60)}?`} act="Log out" close={() => { setEnding(undefined); }} run={async () => {
          await call('DELETE', `/api/sessions/${ending.id}`);
          toast(`${show(ending.client_name || ending.client_id, 60)} is logged out.`);
          await sessions.reload();
        }}>
          <p>Its tokens are refused from now on, and its open streams end. It has to ask you again before it can act for you.</p>
        </Confirm>
      )}
    </Screen>
  );
}
