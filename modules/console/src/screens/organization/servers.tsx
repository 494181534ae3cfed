// The organization's servers: which are there, whether they answer, and the way to a new one.
import type { JSX } from 'preact';
import { query } from '../../api';
import { useLoad, everything } from '../../load';
import type { OrganizationServer } from '../../organization';
import { Link, parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { show } from '../../text';
import { Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Icon } from '../../ui/icons';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';

/** useOrganizationServers gives all servers of the organization. */
export const useOrganizationServers = (seconds = 0): ReturnType<typeof useLoad<OrganizationServer[]>> =>
  useLoad<OrganizationServer[]>('/api/servers', seconds, path => everything<OrganizationServer>(path));

/** Answer says whether a server answered when it was called last. */
export function Answer({ server }: { server: OrganizationServer }): JSX.Element {
  if (server.last_error) return <Tag tone="bad">Out of order</Tag>;
  return server.last_seen_at ? <Tag tone="good">Answers</Tag> : <Tag tone="quiet">Not called yet</Tag>;
}

export function OrganizationServers(): JSX.Element {
  const servers = useOrganizationServers(15);
  const me = useMe();
  const asked = parameters.value.get('search') ?? '';
  const add = can(me.data, 'operate_servers') ? <Link to="/organization/servers/new" class="button main"><Icon name="plus" />Add a server</Link> : undefined;
  const rows = servers.data?.filter(s => `${s.name} ${s.slug} ${s.url ?? ''}`.toLowerCase().includes(asked.toLowerCase()));
  return (
    <Screen title="Servers" about="The MCP servers that your organization's users and agents reach through the gateway." act={add}>
      {servers.error && <Problem error={servers.error} retry={() => { void servers.reload(); }} />}
      {!servers.data && !servers.error && <Waiting rows={5} />}
      {servers.data?.length === 0 && <Empty icon="servers" title="There is no server yet"><p>Add one from the catalogue, or by its address. The gateway tries it at once. Nobody can call it before a policy allows it.</p>{add}</Empty>}
      {servers.data && servers.data.length > 0 && (
        <>
          <form class="filters search" onSubmit={event => { event.preventDefault(); }}>
            <label><span class="unseen">Search servers</span><input type="search" value={asked} placeholder="Search by name or address" onInput={event => { set({ search: event.currentTarget.value }); }} /></label>
          </form>
          {rows?.length === 0 && <Empty icon="search" title="No server matches"><button type="button" onClick={() => { set({ search: '' }); }}>Show all</button></Empty>}
          {rows && rows.length > 0 && (
            <Table label="Servers" rows={rows} id={s => s.id} from={`/api/servers${query({ search: asked })}`} columns={[
              { title: 'Server', kind: 'wide', cell: s => <><Link to={`/organization/servers/${encodeURIComponent(s.slug)}`}><strong>{show(s.name, 80)}</strong></Link><br /><span class="small mono">{show(s.url ?? s.slug, 120)}</span></> },
              { title: 'State', cell: s => <Answer server={s} /> },
              { title: 'Last answer', cell: s => <Time at={s.last_seen_at} /> },
              { title: 'Added', cell: s => <Time at={s.created_at} /> },
            ]} />
          )}
        </>
      )}
    </Screen>
  );
}
