// The overview: how each part of the gateway is, which calls are held, and what comes near its bound.
import type { JSX } from 'preact';
import { useFollow, useLoad } from '../../load';
import type { BudgetSetting, LimitStatus } from '../../organization';
import { Link } from '../../router';
import { can, useMe, useServers } from '../../session';
import { count, show, words } from '../../text';
import type { Approval, Page } from '../../types';
import { Meter, Problem, Screen, Section, Tag, Waiting, type Tone } from '../../ui/basics';
import { Icon } from '../../ui/icons';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { FirstSteps } from './firststeps';

interface Health {
  node: string;
  status: string;
  parts: { kind: string; name: string | null; state: string; text: string }[];
}

const tones: Record<string, Tone> = { ok: 'good', warning: 'warning', degraded: 'warning', failed: 'bad', down: 'bad', off: 'quiet', unknown: 'quiet' };

function Parts(): JSX.Element {
  const health = useLoad<Health>('/api/health/detail', 5);
  if (health.error) return <Problem error={health.error} retry={() => { void health.reload(); }} />;
  if (!health.data) return <Waiting rows={4} />;
  return (
    <Table label="Parts of the gateway" rows={health.data.parts} id={p => `${p.kind} ${p.name ?? ''}`} columns={[
      { title: 'Part', cell: p => <><strong>{words(p.kind)}</strong>{p.name && <><br /><span class="small mono">{show(p.name, 100)}</span></>}</> },
      { title: 'State', cell: p => <Tag tone={tones[p.state] ?? 'bad'}>{words(p.state)}</Tag> },
      { title: 'What it says', kind: 'wide', cell: p => show(p.text, 400) },
    ]} />
  );
}

/** Held lists the held calls of everybody. */
function Held(): JSX.Element | null {
  const held = useFollow<Page<Approval>>('/api/approvals?status=pending&limit=10');
  const servers = useServers();
  if (!held.data) return held.error ? <Problem error={held.error} /> : <Waiting rows={1} />;
  if (held.data.data.length === 0) return <p class="calm"><Icon name="check" />No call is held.</p>;
  return (
    <Section title={count(held.data.pagination.total, 'held call')}>
      <Table label="Held calls" rows={held.data.data} id={a => a.id} columns={[
        { title: 'Tool', kind: 'wide', cell: a => <><span class="mono">{show(a.tool, 80)}</span><br /><span class="small">{show(servers.data?.find(s => s.id === a.mcp_server_id)?.name ?? '', 80)}</span></> },
        { title: 'Of', cell: a => <Link to={`/organization/people/${a.user_id}`}>the user</Link> },
        { title: 'Asked', cell: a => <Time at={a.created_at} /> },
        { title: 'Ends', cell: a => <Time at={a.expires_at} /> },
      ]} />
    </Section>
  );
}

/** near is the fullness from which a limit is shown here, as a part of the whole. */
const near = 0.8;

function Near(): JSX.Element | null {
  const limits = useLoad<LimitStatus[]>('/api/llm-gateway/admin/rate-limits/status', 5);
  const budgets = useLoad<BudgetSetting[]>('/api/llm-gateway/admin/budgets', 10);
  const full = (limits.data ?? []).filter(l => Math.max(l.rpm_percentage, l.tpm_percentage) >= near * 100);
  const spent = (budgets.data ?? []).filter(b => b.enabled && b.amount > 0 && b.spent >= near * b.amount);
  if (full.length + spent.length === 0) return null;
  return (
    <Section title="Near their bound">
      <div class="meters">
        {full.map(l => <Meter key={l.policy.id} label={show(l.policy.name, 60)} value={Math.max(l.rpm_percentage, l.tpm_percentage)} max={100} text={`${Math.round(Math.max(l.rpm_percentage, l.tpm_percentage))} % in the last minute`} />)}
        {spent.map(b => <Meter key={b.id} label={show(b.name, 60)} value={b.spent} max={b.amount} text={`$${b.spent.toFixed(2)} of $${b.amount.toFixed(2)}`} />)}
      </div>
    </Section>
  );
}

export function Overview(): JSX.Element {
  const me = useMe();
  const reads = can(me.data, 'read_everything');
  return (
    <Screen title="Overview" about="How the gateway is at this moment, by the node that answers.">
      {can(me.data, 'administer') && <FirstSteps />}
      {reads && <Near />}
      {reads && <Held />}
      <Section title="Health"><Parts /></Section>
    </Screen>
  );
}
