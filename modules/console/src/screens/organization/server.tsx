// One server of the organization: whether it answers, its tools, who is connected, its policies.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { useLoad } from '../../load';
import type { OrganizationServer, PolicyItem, ServerConnection, Test, Tool } from '../../organization';
import { go, Link, parameters } from '../../router';
import { can, useMe } from '../../session';
import { count, show } from '../../text';
import type { Page } from '../../types';
import { ByFile, Empty, Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Code } from '../../ui/code';
import { Diff } from '../../ui/diff';
import { Confirm, Dialog } from '../../ui/dialog';
import { Table } from '../../ui/table';
import { Tabs } from '../../ui/tabs';
import { Time } from '../../ui/time';
import { toast } from '../../ui/toast';
import { useMore } from '../../more';
import { Tried } from './newserver';
import { PolicyTable } from './policies';
import { Answer, useOrganizationServers } from './servers';

function Overview({ server }: { server: OrganizationServer }): JSX.Element {
  return (
    <div class="panel">
      {server.last_error && <p class="warningtext">The last call found the server out of order: {show(server.last_error, 400)}</p>}
      <dl>
        <dt>Address for clients</dt><dd><Code text={server.proxy_url} label="the address for clients" /></dd>
        <dt>Address of the server</dt><dd class="mono">{show(server.url ?? '', 300)}</dd>
        <dt>Short name</dt><dd class="mono">{show(server.slug)}</dd>
        <dt>Last answer</dt><dd><Time at={server.last_seen_at} /></dd>
        <dt>Added</dt><dd><Time at={server.created_at} /><ByFile of={server} /></dd>
      </dl>
    </div>
  );
}

/** Connections lists who has an account at the server, and ends one. */
function Connections({ server }: { server: OrganizationServer }): JSX.Element {
  const me = useMe();
  const list = useMore<ServerConnection>(`/api/servers/${server.id}/connections?limit=50`, c => c.user_id, 15);
  const [ending, setEnding] = useState<ServerConnection>();
  const name = (c: ServerConnection): string => show(c.email ?? c.name ?? c.user_id, 80);
  if (list.error) return <Problem error={list.error} retry={() => { void list.reload(); }} />;
  if (!list.rows) return <Waiting />;
  if (list.rows.length === 0) return <Empty icon="clients" title="Nobody has connected an account yet"><p>Users do that under “My servers”, or when their client first calls a tool.</p></Empty>;
  return (
    <>
      <Table label="Connected accounts" rows={list.rows} id={c => c.user_id} from={`/api/servers/${server.id}/connections`} more={list.more} busy={list.busy} columns={[
        { title: 'User', kind: 'wide', cell: c => <Link to={`/organization/people/${c.user_id}`}>{name(c)}</Link> },
        { title: 'State', cell: c => <>{c.status === 'connected' ? <Tag tone="good">Connected</Tag> : <Tag tone="bad">{show(c.status)}</Tag>}{c.reason && <><br /><span class="small">{show(c.reason, 200)}</span></>}</> },
        { title: 'Rights', cell: c => show(c.scopes.join(', '), 120) || '–' },
        { title: 'Since', cell: c => <Time at={c.connected_at} /> },
        { title: 'Acts', kind: 'end', cell: c => can(me.data, 'operate_servers') && <button type="button" class="quiet danger" onClick={() => { setEnding(c); }}>Disconnect<span class="unseen"> {name(c)}</span></button> },
      ]} />
      {ending && (
        <Confirm title={`Disconnect ${name(ending)}?`} act="Disconnect" close={() => { setEnding(undefined); }} run={async () => {
          await call('DELETE', `/api/servers/${server.id}/connections/${ending.user_id}`);
          toast(`${name(ending)} is disconnected from ${show(server.name, 60)}.`);
          await list.reload();
        }}>
          <p>The credential is deleted here and revoked at the provider. Streams that use it end. The user can connect again.</p>
        </Confirm>
      )}
    </>
  );
}

function toolState(t: Tool): JSX.Element {
  return t.withheld ? <Tag tone="bad">Withheld</Tag> : t.changed ? <Tag tone="warning">Changed</Tag> : <Tag tone="good">As accepted</Tag>;
}

/** Change shows what changed in a tool, and accepts it. */
export function Change({ tool, server, close, accepted }: { tool: Tool; server: string; close: () => void; accepted: () => Promise<void> }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const accept = async (): Promise<void> => {
    setBusy(true);
    try {
      await call('POST', `/api/servers/${server}/tools/accept`, { name: tool.name, hash: tool.hash });
      toast(`The new form of ${show(tool.name, 60)} is accepted.`);
      await accepted();
      close();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`What changed in ${show(tool.name, 60)}`} close={close}>
      {tool.suspicious.length > 0 && <p class="warningtext">The gateway finds this suspicious: {show(tool.suspicious.join('; '), 400)}</p>}
      <Diff lines={tool.diff.split('\n')} />
      {error && <Problem error={error} />}
      <div class="buttons"><button type="button" onClick={close}>Leave it</button><button type="button" class="main" disabled={busy} onClick={() => { void accept(); }}>Accept this form</button></div>
    </Dialog>
  );
}

function Tools({ server }: { server: OrganizationServer }): JSX.Element {
  const tools = useLoad<Page<Tool>>(`/api/servers/${server.id}/tools?limit=100`, 15);
  const [looking, setLooking] = useState<Tool>();
  if (tools.error) return <Problem error={tools.error} retry={() => { void tools.reload(); }} />;
  if (!tools.data) return <Waiting />;
  if (tools.data.data.length === 0) return <Empty icon="servers" title="No tool was seen yet"><p>The gateway notes the tools when a client first lists them.</p></Empty>;
  return (
    <>
      <Table label="Tools" rows={tools.data.data} id={t => t.name} from={`/api/servers/${server.id}/tools`} columns={[
        { title: 'Tool', kind: 'wide', cell: t => <span class="mono">{show(t.name)}</span> },
        { title: 'State', cell: toolState },
        { title: 'First seen', cell: t => <Time at={t.first_seen_at} /> },
        { title: 'Changed', cell: t => <Time at={t.changed_at} /> },
        { title: 'Acts', kind: 'end', cell: t => t.changed && <button type="button" class="quiet" onClick={() => { setLooking(t); }}>Review<span class="unseen"> {show(t.name)}</span></button> },
      ]} />
      {looking && <Change tool={looking} server={server.id} close={() => { setLooking(undefined); }} accepted={tools.reload} />}
    </>
  );
}

function Policies({ server }: { server: OrganizationServer }): JSX.Element {
  const me = useMe();
  const policies = useLoad<Page<PolicyItem>>(`/api/v2/policies?limit=100&mcp_server_id=${server.id}`, 15);
  const write = can(me.data, 'edit_policies') && <Link to={`/organization/policies/new?server=${server.id}`} class="button">Write a policy</Link>;
  if (policies.error) return <Problem error={policies.error} retry={() => { void policies.reload(); }} />;
  if (!policies.data) return <Waiting />;
  if (policies.data.data.length === 0) return <Empty icon="policies" title="No policy allows anything here"><p>Without one, nobody can call the server's tools.</p>{write}</Empty>;
  return <Section title={count(policies.data.data.length, 'policy', 'policies')} act={write}><PolicyTable policies={policies.data.data} from={`/api/v2/policies?mcp_server_id=${server.id}`} changed={policies.reload} /></Section>;
}

/** Acts tries the server, and deletes it. */
function Acts({ server, changed }: { server: OrganizationServer; changed: () => Promise<void> }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState<Test>();
  const [ending, setEnding] = useState(false);
  const test = async (): Promise<void> => {
    setBusy(true);
    try {
      setTried(await call<Test>('POST', `/api/servers/${server.id}/test`));
      await changed();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      toast(failed.message, true);
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={busy} onClick={() => { void test(); }}>{busy ? 'Trying…' : 'Try it'}</button>
      <button type="button" class="danger" onClick={() => { setEnding(true); }}>Delete</button>
      {tried && <Dialog title={`${show(server.name, 60)} was tried`} close={() => { setTried(undefined); }}><Tried test={tried} /><div class="buttons"><button type="button" class="main" onClick={() => { setTried(undefined); }}>Done</button></div></Dialog>}
      {ending && <Delete server={server} close={() => { setEnding(false); }} changed={changed} />}
    </>
  );
}

function Delete({ server, close, changed }: { server: OrganizationServer; close: () => void; changed: () => Promise<void> }): JSX.Element {
  const policies = useLoad<Page<PolicyItem>>(`/api/v2/policies?limit=1&mcp_server_id=${server.id}`);
  return (
    <Confirm title={`Delete ${show(server.name, 60)}?`} act="Delete the server" close={close} run={async () => {
      await call('DELETE', `/api/servers/${server.id}`);
      toast(`${show(server.name, 60)} is deleted.`);
      await changed();
      go('/organization/servers');
    }}>
      <p>Clients that use it stop working at once. All users' accounts at it are disconnected, at the provider too. {policies.data ? `${count(policies.data.pagination.total, 'policy', 'policies')} of it ${policies.data.pagination.total === 1 ? 'is' : 'are'} archived.` : ''} It cannot be brought back.</p>
    </Confirm>
  );
}

export function OrganizationServerScreen({ name }: { name: string }): JSX.Element {
  const servers = useOrganizationServers(15);
  const me = useMe();
  const server = servers.data?.find(s => s.slug === name);
  const open = parameters.value.get('tab') ?? 'overview';
  const to = `/organization/servers/${encodeURIComponent(name)}`;
  if (!server) {
    return (
      <Screen title="Server">
        {servers.error ? <Problem error={servers.error} retry={() => { void servers.reload(); }} /> : !servers.data ? <Waiting /> : <Empty icon="search" title="There is no such server"><Link to="/organization/servers" class="button">To the servers</Link></Empty>}
      </Screen>
    );
  }
  const operates = can(me.data, 'operate_servers');
  const edits = can(me.data, 'edit_policies');
  return (
    <>
      <p class="back"><Link to="/organization/servers">Servers</Link></p>
      <Screen title={show(server.name, 80)} about={<><Answer server={server} /> <span class="mono">{show(server.slug)}</span></>} act={operates ? <Acts server={server} changed={servers.reload} /> : undefined}>
        <Tabs label={`Parts of ${show(server.name, 60)}`} open={open} tabs={[
          { id: 'overview', title: 'Overview', to },
          ...(edits ? [{ id: 'tools', title: 'Tools', to: `${to}?tab=tools` }] : []),
          ...(operates ? [{ id: 'connections', title: 'Connections', to: `${to}?tab=connections` }] : []),
          { id: 'policies', title: 'Policies', to: `${to}?tab=policies` },
          ...(can(me.data, 'read_everything') ? [{ id: 'calls', title: 'Calls', to: `/organization/audit?server=${server.id}` }] : []),
        ]} />
        {open === 'tools' && edits ? <Tools server={server} /> : open === 'connections' && operates ? <Connections server={server} /> : open === 'policies' ? <Policies server={server} /> : <Overview server={server} />}
      </Screen>
    </>
  );
}
