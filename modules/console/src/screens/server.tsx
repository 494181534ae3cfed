// One server: the reader's connection, how to use it, and what happened there.
import type { JSX } from 'preact';
import { useLoad } from '../load';
import { Link, parameters } from '../router';
import { can, hasAccount, useEntries, useMe, useServers } from '../session';
import { show } from '../text';
import type { Calls, Page, Server as ServerType } from '../types';
import { Empty, Problem, Screen, Tag, Waiting } from '../ui/basics';
import { Code } from '../ui/code';
import { Table } from '../ui/table';
import { Tabs } from '../ui/tabs';
import { Time } from '../ui/time';
import { CallTable } from './activity';
import { Snippets } from './clients';
import { Connection, State } from './servers';

interface Tool {
  name: string;
  changed: boolean;
  withheld: boolean;
  first_seen_at: string;
}

function Overview({ server }: { server: ServerType }): JSX.Element {
  const entry = useEntries().get(server.mcp_server_directory_id);
  return (
    <div class="panel">
      {entry?.description && <p class="description">{show(entry.description, 1000)}</p>}
      {server.last_error && <p class="warningtext">The last call found the server out of order{can(useMe().data, 'operate_servers') ? `: ${show(server.last_error, 400)}` : '.'}</p>}
      <dl>
        <dt>Address for clients</dt><dd><Code text={server.proxy_url} label="the address for clients" /></dd>
        <dt>Account</dt><dd>{hasAccount(entry) ? <State server={server} /> : 'No account needed'}</dd>
        {server.scopes.length > 0 && <><dt>Your account's rights</dt><dd>{server.scopes.map(s => <code key={s}>{show(s)} </code>)}</dd></>}
        <dt>Last answer</dt><dd><Time at={server.last_seen_at} /></dd>
      </dl>
    </div>
  );
}

/** Tools shows the tools that the gateway has seen to those who decide on them, and to others the ones that they called. */
function Tools({ server }: { server: ServerType }): JSX.Element {
  return can(useMe().data, 'edit_policies') ? <SeenTools server={server} /> : <CalledTools server={server} />;
}

function SeenTools({ server }: { server: ServerType }): JSX.Element {
  const tools = useLoad<Page<Tool>>(`/api/servers/${server.id}/tools?limit=100`);
  if (tools.error) return <Problem error={tools.error} retry={() => { void tools.reload(); }} />;
  if (!tools.data) return <Waiting />;
  if (tools.data.data.length === 0) return <Empty icon="servers" title="No tool was seen yet"><p>The gateway notes the tools when a client first lists them.</p></Empty>;
  return (
    <Table label="Tools" rows={tools.data.data} id={t => t.name} columns={[
      { title: 'Tool', kind: 'wide', cell: t => <span class="mono">{show(t.name)}</span> },
      { title: 'State', cell: t => (t.withheld ? <Tag tone="bad">Withheld</Tag> : t.changed ? <Tag tone="warning">Changed</Tag> : <Tag tone="good">As accepted</Tag>) },
      { title: 'First seen', cell: t => <Time at={t.first_seen_at} /> },
    ]} />
  );
}

function CalledTools({ server }: { server: ServerType }): JSX.Element {
  const calls = useLoad<Calls>(`/api/audit/mine?limit=100&mcp_server_id=${server.id}`);
  if (calls.error) return <Problem error={calls.error} retry={() => { void calls.reload(); }} />;
  if (!calls.data) return <Waiting />;
  const last = new Map(calls.data.data.filter(c => c.tool).reverse().map(c => [c.tool ?? '', c]));
  if (last.size === 0) return <Empty icon="servers" title="You have called no tool here yet"><p>Your client lists the tools that policies let you use. Those that you call appear here with the decision.</p></Empty>;
  return (
    <Table label="Tools that you called" rows={[...last]} id={([tool]) => tool} columns={[
      { title: 'Tool', kind: 'wide', cell: ([tool]) => <span class="mono">{show(tool)}</span> },
      { title: 'Last decision', cell: ([, c]) => <Tag tone={c.decision === 'deny' ? 'bad' : c.decision === 'ask' ? 'warning' : 'good'}>{c.decision === 'deny' ? 'Denied' : c.decision === 'ask' ? 'Asks you' : 'Allowed'}</Tag> },
      { title: 'Last call', cell: ([, c]) => <Time at={c.time} /> },
    ]} />
  );
}

function ServerCalls({ server }: { server: ServerType }): JSX.Element {
  const calls = useLoad<Calls>(`/api/audit/mine?limit=20&mcp_server_id=${server.id}`, 10);
  if (calls.error) return <Problem error={calls.error} retry={() => { void calls.reload(); }} />;
  if (!calls.data) return <Waiting />;
  if (calls.data.data.length === 0) return <Empty icon="activity" title="You have called nothing here yet" />;
  return <CallTable label="Your calls to this server" calls={calls.data.data} />;
}

export function Server({ name }: { name: string }): JSX.Element {
  const servers = useServers(15);
  const server = servers.data?.find(s => s.slug === name);
  const open = parameters.value.get('tab') ?? 'overview';
  const to = `/servers/${encodeURIComponent(name)}`;
  if (!server) {
    return (
      <Screen title="Server">
        {servers.error ? <Problem error={servers.error} retry={() => { void servers.reload(); }} /> : !servers.data ? <Waiting /> : <Empty icon="search" title="There is no such server"><Link to="/servers" class="button">To your servers</Link></Empty>}
      </Screen>
    );
  }
  return (
    <>
      <p class="back"><Link to="/servers">My servers</Link></p>
      <Screen title={show(server.name, 80)} about={<><State server={server} /> <span class="mono">{show(server.slug)}</span></>} act={<Connection server={server} changed={servers.reload} />}>
        <Tabs label={`Parts of ${show(server.name, 60)}`} open={open} tabs={[
          { id: 'overview', title: 'Overview', to }, { id: 'tools', title: 'Tools', to: `${to}?tab=tools` },
          { id: 'use', title: 'Use it', to: `${to}?tab=use` }, { id: 'calls', title: 'My calls', to: `${to}?tab=calls` },
        ]} />
        {open === 'tools' ? <Tools server={server} /> : open === 'use' ? <Snippets slug={server.slug} /> : open === 'calls' ? <ServerCalls server={server} /> : <Overview server={server} />}
      </Screen>
    </>
  );
}
