// My activity: the calls with the reader's name, and why some were refused.
import type { JSX } from 'preact';
import { query } from '../api';
import { useLoad } from '../load';
import { useMore } from '../more';
import { parameters, set } from '../router';
import { useServers } from '../session';
import { show, words } from '../text';
import type { Call, Calls } from '../types';
import { Empty, Meter, Problem, Screen, Section, Tag, Waiting, type Tone } from '../ui/basics';
import { Json } from '../ui/code';
import { Table } from '../ui/table';
import { Time } from '../ui/time';
import type { Limits } from '../types';

/** verdict says in a word what became of a call. */
function verdict(c: Call): { tone: Tone; text: string } {
  if (c.decision === 'deny') return { tone: 'bad', text: 'Refused' };
  if (c.outcome === 'ok') return { tone: 'good', text: 'Done' };
  if (c.outcome === 'held') return { tone: 'warning', text: 'Held' };
  if (c.outcome === 'ended') return { tone: 'quiet', text: 'Ended' };
  return c.outcome ? { tone: 'bad', text: words(c.outcome).replace(/^./, first => first.toUpperCase()) } : { tone: 'quiet', text: 'Under way' };
}

/** reason says in short why the gateway decided so. */
function reason(c: Call): string {
  const rule = c.rule ? `“${show(c.rule, 60)}”` : '';
  switch (c.decision) {
    case 'deny': return rule ? `Denied by ${rule}` : 'No rule allows it';
    case 'ask': return rule ? `${rule} asks you` : 'A policy asks you';
  }
  return rule ? `Allowed by ${rule}` : 'Details';
}

/** Why tells the reason of what became of a call, as the gateway recorded it. */
function Why({ of: c }: { of: Call }): JSX.Element {
  return (
    <details class="why">
      <summary>{reason(c)}</summary>
      <dl>
        <dt>Decision</dt><dd>{c.decision ? words(c.decision) : 'none'}{c.rule && <> by rule <code>{show(c.rule)}</code></>}{c.policy_revision !== null && `, revision ${c.policy_revision} of the policy`}</dd>
        <dt>Outcome</dt><dd>{c.outcome ? words(c.outcome) : 'none yet'}{c.upstream_status !== null && `, the server answered ${c.upstream_status}`}{c.duration_ms !== null && `, ${Math.round(c.duration_ms)} ms`}</dd>
        {c.client && <><dt>Client</dt><dd>{show(c.client, 120)}</dd></>}
        {c.trace_id && <><dt>Trace</dt><dd class="mono">{show(c.trace_id)}</dd></>}
        <dt>Record</dt><dd class="mono">{show(c.id)}</dd>
      </dl>
      {Object.keys(c.detail).length > 0 && <Json name="detail" value={c.detail} />}
    </details>
  );
}

/** CallTable lists calls; the short form is for a glance. */
export function CallTable({ label, calls, short = false, from, more, busy }: { label: string; calls: Call[]; short?: boolean; from?: string; more?: (() => void) | undefined; busy?: boolean }): JSX.Element {
  return (
    <Table label={label} rows={calls} id={c => c.id} from={from} more={more} busy={busy ?? false} columns={[
      { title: 'Call', kind: 'wide', cell: c => <><span class="mono">{show(c.tool ?? c.method ?? c.event, 80)}</span>{c.server && <><br /><span class="small">{show(c.server, 80)}</span></>}</> },
      { title: 'Result', cell: c => { const v = verdict(c); return <Tag tone={v.tone}>{v.text}</Tag>; } },
      { title: 'When', cell: c => <Time at={c.time} /> },
      ...(short ? [] : [{ title: 'Why', cell: (c: Call) => <Why of={c} /> }]),
    ]} />
  );
}

/** Mine shows the limits that bound the reader. */
function Mine(): JSX.Element | null {
  const limits = useLoad<Limits>('/api/limits/mine', 5);
  const { rate_limits: rates = [], budgets = [] } = limits.data ?? {};
  if (limits.error || rates.length + budgets.length === 0) return null;
  return (
    <Section title="Your limits">
      <div class="meters">
        {rates.map(l => <Meter key={l.id} label={show(l.name, 60)} value={Math.max(l.rpm_percentage, l.tpm_percentage)} max={100} text={l.rpm_limit !== null ? `${l.rpm_used} of ${l.rpm_limit} requests in the last minute` : `${l.tpm_used} of ${l.tpm_limit ?? 0} tokens in the last minute`} />)}
        {budgets.map(b => <Meter key={b.id} label={show(b.name, 60)} value={b.spent + b.reserved} max={b.amount} text={`$${b.spent.toFixed(2)} of $${b.amount.toFixed(2)} (${show(b.period)})`} />)}
      </div>
    </Section>
  );
}

export function Activity(): JSX.Element {
  const asked = parameters.value;
  const filters = { decision: asked.get('decision'), tool: asked.get('tool'), mcp_server_id: asked.get('server') };
  const path = `/api/audit/mine${query({ ...filters, limit: 25 })}`;
  const list = useMore<Call, Calls>(path, c => c.id, 10);
  const servers = useServers();
  const filtered = Object.values(filters).some(Boolean);
  return (
    <Screen title="My activity" about="Every call with your name, as the audit log has it: also those that were refused, with the reason.">
      <Mine />
      <Section title="Calls">
        <form class="filters" onSubmit={event => { event.preventDefault(); set({ tool: String(new FormData(event.currentTarget).get('tool')) }); }}>
          <label><span>Result</span><select value={filters.decision ?? ''} onChange={event => { set({ decision: event.currentTarget.value }); }}>
            <option value="">all</option><option value="allow">allowed</option><option value="ask">asked you</option><option value="deny">refused</option>
          </select></label>
          <label><span>Server</span><select value={filters.mcp_server_id ?? ''} onChange={event => { set({ server: event.currentTarget.value }); }}>
            <option value="">all</option>{servers.data?.map(s => <option key={s.id} value={s.id}>{show(s.name, 60)}</option>)}
          </select></label>
          <label><span>Tool</span><input type="search" name="tool" defaultValue={filters.tool ?? ''} placeholder="exact name" /></label>
          <button type="submit">Search</button>
        </form>
        {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
        {!list.rows && !list.error && <Waiting rows={6} />}
        {list.rows && list.rows.length > 0 && <CallTable label="Your calls" calls={list.rows} from={path} more={list.more} busy={list.busy} />}
        {list.rows?.length === 0 && (filtered
          ? <Empty icon="search" title="No call matches"><button type="button" onClick={() => { set({ decision: '', tool: '', server: '' }); }}>Show all</button></Empty>
          : <Empty icon="activity" title="No call yet"><p>Set up a client, and let it call a tool. Each call appears here at once.</p></Empty>)}
        {list.first?.partial && <p class="small">The search stopped before the beginning of the log: narrow it down to see older calls.</p>}
      </Section>
    </Screen>
  );
}
