// The policies: which decide, which are drafts, and the way to a new one.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure, query } from '../../api';
import { everything, useLoad } from '../../load';
import type { PolicyItem } from '../../organization';
import { Link, parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { show } from '../../text';
import { ByFile, Empty, Problem, Screen, Tag, Waiting, type Tone } from '../../ui/basics';
import { Icon } from '../../ui/icons';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { toast } from '../../ui/toast';
import { useOrganizationServers } from './servers';

const states: Record<string, { tone: Tone; text: string }> = {
  ACTIVE: { tone: 'good', text: 'Decides' }, DRAFT: { tone: 'warning', text: 'Draft' }, INACTIVE: { tone: 'quiet', text: 'Switched off' }, ARCHIVED: { tone: 'quiet', text: 'Archived' },
};

/** PolicyState says what a policy does at the moment. */
export function PolicyState({ status }: { status: string }): JSX.Element {
  const state = states[status] ?? { tone: 'quiet', text: show(status) };
  return <Tag tone={state.tone}>{state.text}</Tag>;
}

/** switchTo makes a policy decide, or no longer. */
export async function switchTo(id: string, on: boolean): Promise<void> {
  await call('PUT', `/api/policy/${on ? 'enable' : 'disable'}?id=${encodeURIComponent(id)}`);
}

/** PolicyTable lists policies, and switches them. */
export function PolicyTable({ policies, from, changed }: { policies: PolicyItem[]; from: string; changed: () => Promise<void> }): JSX.Element {
  const me = useMe();
  const [busy, setBusy] = useState('');
  const flip = async (p: PolicyItem): Promise<void> => {
    setBusy(p.id);
    try {
      await switchTo(p.id, p.status !== 'ACTIVE');
      toast(p.status === 'ACTIVE' ? `${show(p.name, 60)} decides no more.` : `${show(p.name, 60)} decides from now on.`);
      await changed();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      toast(failed.message, true);
    }
    setBusy('');
  };
  return (
    <Table label="Policies" rows={policies} id={p => p.id} from={from} columns={[
      { title: 'Policy', kind: 'wide', cell: p => <><Link to={`/organization/policies/${p.id}`}><strong>{show(p.name, 80)}</strong></Link><ByFile of={p} /><br /><span class="small">{show(p.mcp_server_name, 80)}</span></> },
      { title: 'State', cell: p => <PolicyState status={p.status} /> },
      { title: 'Agents', cell: p => (p.application_names.length ? show(p.application_names.join(', '), 80) : 'all') },
      { title: 'Rules', cell: p => p.rules_count },
      { title: 'Changed', cell: p => <><Time at={p.updated_at} />{p.updated_by_user_name && <><br /><span class="small">{show(p.updated_by_user_name, 60)}</span></>}</> },
      { title: 'Acts', kind: 'end', cell: p => can(me.data, 'edit_policies') && p.status !== 'ARCHIVED' && (
        <button type="button" class={`quiet${p.status === 'ACTIVE' ? ' danger' : ''}`} disabled={busy === p.id} onClick={() => { void flip(p); }}>{p.status === 'ACTIVE' ? 'Switch off' : 'Enable'}<span class="unseen"> {show(p.name, 80)}</span></button>
      ) },
    ]} />
  );
}

export function Policies(): JSX.Element {
  const asked = parameters.value;
  const filters = { status: asked.get('status'), mcp_server_id: asked.get('server'), search: asked.get('search') };
  const policies = useLoad<PolicyItem[]>(`/api/v2/policies${query(filters)}`, 15, path => everything<PolicyItem>(path));
  const servers = useOrganizationServers();
  const me = useMe();
  const write = can(me.data, 'edit_policies') ? <Link to="/organization/policies/new" class="button main"><Icon name="plus" />Write a policy</Link> : undefined;
  const filtered = Object.values(filters).some(Boolean);
  return (
    <Screen title="Policies" about="Which agent may call which tool for whom. What no policy allows is refused." act={write}>
      <form class="filters" onSubmit={event => { event.preventDefault(); set({ search: String(new FormData(event.currentTarget).get('search')) }); }}>
        <label><span>State</span><select value={filters.status ?? ''} onChange={event => { set({ status: event.currentTarget.value }); }}>
          <option value="">all</option>{Object.entries(states).map(([id, s]) => <option key={id} value={id}>{s.text.toLowerCase()}</option>)}
        </select></label>
        <label><span>Server</span><select value={filters.mcp_server_id ?? ''} onChange={event => { set({ server: event.currentTarget.value }); }}>
          <option value="">all</option>{servers.data?.map(s => <option key={s.id} value={s.id}>{show(s.name, 60)}</option>)}
        </select></label>
        <label><span>Name</span><input type="search" name="search" defaultValue={filters.search ?? ''} /></label>
        <button type="submit">Search</button>
      </form>
      {policies.error && <Problem error={policies.error} retry={() => { void policies.reload(); }} />}
      {!policies.data && !policies.error && <Waiting rows={4} />}
      {policies.data?.length === 0 && (filtered
        ? <Empty icon="search" title="No policy matches"><button type="button" onClick={() => { set({ status: '', server: '', search: '' }); }}>Show all</button></Empty>
        : <Empty icon="policies" title="There is no policy yet"><p>Until there is one, every call of a tool is refused.</p>{write}</Empty>)}
      {policies.data && policies.data.length > 0 && <PolicyTable policies={policies.data} from={`/api/v2/policies${query(filters)}`} changed={policies.reload} />}
    </Screen>
  );
}
