// The audit log: searched, and told call by call.
import type { JSX } from 'preact';
import { query } from '../../api';
import { useLoad } from '../../load';
import type { User } from '../../organization';
import { Link, parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { count, show, words } from '../../text';
import type { Call } from '../../types';
import { Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Json } from '../../ui/code';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { useMore } from '../../more';
import { useOrganizationServers } from './servers';

interface Audit extends Call {
  kind: string;
  user_id: string | null;
  agent_id: string | null;
  arguments: unknown;
  arguments_digest: string | null;
  session: string | null;
  chain: { node: string; segment: string; sequence: number };
  shadow: { decision: string }[];
}

interface Status {
  newest: { sequence: number } | null;
  journal: { node: string; segments: number; set_aside: number; unshipped_bytes: number };
  checkpoint: { number: number; time: string | null } | null;
}

interface Facets {
  values: Record<string, { values: { value: string | null; count: number }[]; others: number }>;
  partial: boolean;
}

/** Verdict says in a word what a record tells. */
function Verdict({ of: a }: { of: Audit }): JSX.Element {
  if (a.decision === 'deny') return <Tag tone="bad">Refused</Tag>;
  if (a.outcome === 'held' || (a.decision === 'ask' && !a.outcome)) return <Tag tone="warning">Held</Tag>;
  if (a.outcome === 'refused') return <Tag tone="bad">Refused</Tag>;
  if (!a.outcome) return <Tag tone="quiet">{a.kind === 'call' ? 'Under way' : 'Done'}</Tag>;
  if (a.outcome === 'ok') return <Tag tone="good">Done</Tag>;
  return <Tag tone={a.outcome === 'ended' ? 'quiet' : 'bad'}>{words(a.outcome)}</Tag>;
}

/** Story tells one record: who, what, which rule, with which credential, and how it ended. */
function Story({ of: a }: { of: Audit }): JSX.Element {
  return (
    <details class="why">
      <summary>{a.rule ? `Rule ${show(a.rule, 60)}` : 'The story'}</summary>
      <dl>
        <dt>Record</dt><dd>{words(a.kind)}, {show(a.event)}</dd>
        {a.client && <><dt>Client</dt><dd>{show(a.client, 160)}</dd></>}
        {a.decision && <><dt>Decision</dt><dd>{words(a.decision)}{a.rule && <> by rule <code>{show(a.rule)}</code></>}{a.policy_id && <> of <Link to={`/organization/policies/${a.policy_id}`}>its policy</Link>, revision {a.policy_revision}</>}</dd></>}
        {a.approval_id && <><dt>Approval</dt><dd class="mono">{show(a.approval_id)}</dd></>}
        {a.outcome && <><dt>Outcome</dt><dd>{words(a.outcome)}{a.upstream_status !== null && `, the server answered ${a.upstream_status}`}{a.duration_ms !== null && `, ${Math.round(a.duration_ms)} ms`}</dd></>}
        {a.trace_id && <><dt>Trace</dt><dd class="mono">{show(a.trace_id)}</dd></>}
        {a.arguments_digest && <><dt>Digest of the arguments</dt><dd class="mono">{show(a.arguments_digest)}</dd></>}
        <dt>Place in the log</dt><dd class="mono">{show(a.chain.node)} / {show(a.chain.segment)} / {a.chain.sequence}</dd>
      </dl>
      {a.arguments !== null && a.arguments !== undefined && <Json name="arguments" value={a.arguments} />}
      {Object.keys(a.detail).length > 0 && <Json name="detail" value={a.detail} />}
    </details>
  );
}

/** Who names the user of a record. */
export function Who({ id }: { id: string }): JSX.Element {
  const { data } = useLoad<User>(`/api/users/${id}`);
  return <Link to={`/organization/people/${id}`} class="whole">{data ? show(data.email ?? data.name ?? data.subject, 60) : 'somebody'}</Link>;
}

/** Chain says where the log stands. */
function Chain(): JSX.Element | null {
  const { data } = useLoad<Status>('/api/audit/status', 10);
  if (!data) return null;
  return (
    <p class="small">
      {data.journal.set_aside > 0 && <Tag tone="bad">{count(data.journal.set_aside, 'segment')} set aside</Tag>} {data.checkpoint?.time ? <>Last signed checkpoint: number {data.checkpoint.number}, <Time at={data.checkpoint.time} />. </> : 'No checkpoint is signed yet. '}
      {data.journal.unshipped_bytes > 0 ? `${(data.journal.unshipped_bytes / 1024).toFixed(0)} KiB are on their way to the store.` : 'Everything is in the store.'} <code>durward audit verify</code> proves that nothing was changed.
    </p>
  );
}

const kinds = ['call', 'admin', 'approval', 'credential', 'login'];
const since: [string, string][] = [['', 'any time'], ['1', 'the last hour'], ['24', 'the last day'], ['168', 'the last week'], ['720', 'the last 30 days']];

/** hoursAgo is a time in the past, to the minute: an address that is asked again within it stays the same. */
const hoursAgo = (hours: string | null): string | null => (hours ? new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(hours) * 3_600_000).toISOString() : null);

/** Numbers shows which values the found records have most, to narrow a search down. */
function Numbers({ path }: { path: string }): JSX.Element | null {
  const { data } = useLoad<{ facets: Facets | null }>(path);
  const servers = useOrganizationServers();
  const shown = Object.entries(data?.facets?.values ?? {}).filter(([, f]) => f.values.length > 1);
  if (shown.length === 0) return null;
  return (
    <div class="facets">
      {shown.map(([field, f]) => (
        <p key={field} class="small"><span class="muted">{words(field)}:</span> {f.values.filter(v => v.value !== null).slice(0, 6).map(v => (
          <button key={v.value} type="button" class="quiet" onClick={() => { set({ [field]: v.value ?? '' }); }}>{show(field === 'server' ? servers.data?.find(s => s.id === v.value)?.name ?? 'a deleted server' : v.value, 60)} <span class="muted">{v.count.toLocaleString('en')}</span></button>
        ))}</p>
      ))}
    </div>
  );
}

export function AuditLog(): JSX.Element {
  const asked = parameters.value;
  const servers = useOrganizationServers();
  const edits = can(useMe().data, 'edit_policies');
  const hours = asked.get('hours');
  const filters = {
    kind: asked.get('kind'), decision: asked.get('decision'), outcome: asked.get('outcome'), tool: asked.get('tool'), mcp_server_id: asked.get('server'), user_id: asked.get('user'), policy_id: asked.get('policy'), from: hoursAgo(hours),
  };
  const path = `/api/audit${query({ ...filters, limit: 50 })}&cursor=`;
  const list = useMore<Audit>(path, a => a.id);
  const clear = (): void => { set({ kind: '', decision: '', outcome: '', tool: '', server: '', user: '', policy: '', hours: '' }); };
  return (
    <Screen title="Audit" about="Every call and every change, as it was written before it happened." act={<a class="button" href="/docs" target="_blank" rel="noopener">Export by API</a>}>
      <Chain />
      <form class="filters" onSubmit={event => { event.preventDefault(); set({ tool: String(new FormData(event.currentTarget).get('tool')) }); }}>
        <label><span>When</span><select value={hours ?? ''} onChange={event => { set({ hours: event.currentTarget.value }); }}>{since.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select></label>
        <label><span>Kind</span><select value={filters.kind ?? ''} onChange={event => { set({ kind: event.currentTarget.value }); }}><option value="">all</option>{kinds.map(k => <option key={k} value={k}>{k}</option>)}</select></label>
        <label><span>Decision</span><select value={filters.decision ?? ''} onChange={event => { set({ decision: event.currentTarget.value }); }}><option value="">all</option><option value="allow">allowed</option><option value="ask">held</option><option value="deny">refused</option></select></label>
        <label><span>Server</span><select value={filters.mcp_server_id ?? ''} onChange={event => { set({ server: event.currentTarget.value }); }}><option value="">all</option>{servers.data?.map(s => <option key={s.id} value={s.id}>{show(s.name, 60)}</option>)}</select></label>
        <label><span>Tool</span><input type="search" name="tool" defaultValue={filters.tool ?? ''} placeholder="exact name" /></label>
        <button type="submit">Search</button>
        {filters.mcp_server_id && edits && <Link to={`/organization/policies/new${query({ server: filters.mcp_server_id, from: 'calls', user: filters.user_id, tool: filters.tool, decision: filters.decision })}`}>A policy from these calls</Link>}
        {filters.user_id && <button type="button" class="quiet" onClick={() => { set({ user: '' }); }}>Of one user: show all</button>}
        {filters.outcome && <button type="button" class="quiet" onClick={() => { set({ outcome: '' }); }}>{words(filters.outcome)}: show all</button>}
      </form>
      <Numbers path={`/api/audit${query({ ...filters, limit: 1, facets: 'decision,outcome,tool,server' })}`} />
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!list.rows && !list.error && <Waiting rows={8} />}
      {list.rows?.length === 0 && <Empty icon="search" title="Nothing matches"><button type="button" onClick={clear}>Show all</button></Empty>}
      {list.rows && list.rows.length > 0 && (
        <Table label="Records" rows={list.rows} id={a => a.id} from={path} more={list.more} busy={list.busy} columns={[
          { title: 'What', kind: 'wide', cell: a => <><span class="mono">{show(a.tool ?? a.method ?? a.event, 80)}</span>{a.server && <><br /><span class="small">{show(a.server, 80)}</span></>}</> },
          { title: 'Who', cell: a => (a.user_id ? <Who id={a.user_id} /> : <span class="muted">–</span>) },
          { title: 'Result', cell: a => <Verdict of={a} /> },
          { title: 'When', cell: a => <Time at={a.time} /> },
          { title: 'Why', cell: a => <Story of={a} /> },
        ]} />
      )}
    </Screen>
  );
}
