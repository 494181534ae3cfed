// Limits, budgets and usage: what bounds models and calls, how full it is, and where the cost comes from.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { query } from '../../api';
import { useLoad } from '../../load';
import type { BudgetSetting, LimitStatus, UsageRow, Usages } from '../../organization';
import { parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { show, words } from '../../text';
import { ByFile, Empty, Meter, Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Chart } from '../../ui/chart';
import { Icon } from '../../ui/icons';
import { Delete, Make, type Ending } from '../../ui/object';
import { Table } from '../../ui/table';

const budgets = '/api/llm-gateway/admin/budgets';
const limits = '/api/llm-gateway/admin/rate-limits';

/** scopes are the things that a limit can be for, and whether it names one of them. */
const scopes: [string, string][] = [['org', 'the whole organization'], ['model_alias', 'a model (alias)'], ['user', 'a user (id)'], ['group', 'a group'], ['api_key', 'an API key (id)'], ['agent', 'an agent (id)'], ['mcp_server', 'an MCP server (id)']];

const dollars = (amount: number): string => `$${amount.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

const scopeOf = (s: { scope_type: string; scope_id: string | null; scope_value: string | null }): string =>
  s.scope_type === 'org' ? 'the organization' : `${words(s.scope_type)} ${show(s.scope_value ?? s.scope_id ?? '(each one)', 60)}`;

function Scope(): JSX.Element {
  const [type, setType] = useState('org');
  return (
    <>
      <label for="scope">For</label>
      <select id="scope" name="scope_type" value={type} onChange={event => { setType(event.currentTarget.value); }}>{scopes.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select>
      {type !== 'org' && <><label for="scopename">Which one</label><input id="scopename" name="scope" autocomplete="off" aria-describedby="scopehint" /><p id="scopehint" class="small hint">Empty: each one has its own count.</p></>}
    </>
  );
}

/** scoped reads the scope of a form: groups and models have names, the rest has ids. */
function scoped(fields: FormData): Record<string, string | null> {
  const type = String(fields.get('scope_type'));
  const name = String(fields.get('scope') ?? '').trim() || null;
  return type === 'group' || type === 'model_alias' ? { scope_type: type, scope_value: name } : { scope_type: type, scope_id: type === 'org' ? null : name };
}

export function Budgets(): JSX.Element {
  const list = useLoad<BudgetSetting[]>(budgets, 5);
  const me = useMe();
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<Ending>();
  const administers = can(me.data, 'administer');
  const add = administers ? <button type="button" class="main" onClick={() => { setMaking(true); }}><Icon name="plus" />New budget</button> : undefined;
  return (
    <Screen title="Budgets" about="How much models may cost. The numbers are those that the gateway decides by." act={add}>
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!list.data && !list.error && <Waiting />}
      {list.data?.length === 0 && <Empty icon="budgets" title="Nothing bounds the cost of models"><p>A budget stops calls of models when its amount is spent, or warns.</p>{add}</Empty>}
      {list.data && list.data.length > 0 && (
        <Table label="Budgets" rows={list.data} id={b => b.id} from={budgets} columns={[
          { title: 'Budget', kind: 'wide', cell: b => <Meter label={show(b.name, 60)} value={b.spent} max={b.amount} text={`${dollars(b.spent)} of ${dollars(b.amount)} this ${show(b.period)}`} /> },
          { title: 'For', cell: b => <>{scopeOf(b)}<ByFile of={b} /></> },
          { title: 'At its end', cell: b => (!b.enabled ? <Tag tone="quiet">Switched off</Tag> : b.hard_stop ? <Tag tone="warning">Calls stop</Tag> : <Tag tone="quiet">A warning</Tag>) },
          { title: 'Acts', kind: 'end', cell: b => administers && <button type="button" class="quiet danger" onClick={() => { setEnding(b); }}>Delete<span class="unseen"> {show(b.name, 60)}</span></button> },
        ]} />
      )}
      {making && (
        <Make title="New budget" act="Make the budget" path={budgets} close={() => { setMaking(false); }} made={list.reload}
          body={f => ({ name: String(f.get('name')), amount: Number(f.get('amount')), period: String(f.get('period')), hard_stop: f.get('stop') === 'on', ...scoped(f) })}>
          <>
            <label for="amount">Amount in US dollars</label><input id="amount" name="amount" type="number" min="0.01" step="0.01" required />
            <label for="period">For each</label><select id="period" name="period"><option value="month">month</option><option value="day">day</option></select>
            <Scope />
            <label class="check"><input type="checkbox" name="stop" defaultChecked /> Stop calls when it is spent</label>
          </>
        </Make>
      )}
      {ending && <Delete what={ending} path={budgets} effect="Calls that it stops go on at once." close={() => { setEnding(undefined); }} done={list.reload} />}
    </Screen>
  );
}

export function Limits(): JSX.Element {
  const list = useLoad<LimitStatus[]>(`${limits}/status`, 1);
  const me = useMe();
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<Ending>();
  const administers = can(me.data, 'administer');
  const add = administers ? <button type="button" class="main" onClick={() => { setMaking(true); }}><Icon name="plus" />New limit</button> : undefined;
  return (
    <Screen title="Limits" about="How many requests and tokens a minute. These are the enforcing counters, once a second." act={add}>
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!list.data && !list.error && <Waiting />}
      {list.data?.length === 0 && <Empty icon="budgets" title="Nothing bounds the rate of calls"><p>A limit answers calls beyond it with 429 until the minute moves on.</p>{add}</Empty>}
      {list.data && list.data.length > 0 && (
        <Table label="Limits" rows={list.data} id={l => l.policy.id} from={`${limits}/status`} columns={[
          { title: 'Limit', kind: 'wide', cell: l => (
            <>
              <strong>{show(l.policy.name, 60)}</strong>
              {l.rpm_limit > 0 && <Meter label="Requests" value={l.rpm_used} max={l.rpm_limit} text={`${l.rpm_used.toLocaleString('en')} of ${l.rpm_limit.toLocaleString('en')} in the last minute`} />}
              {l.tpm_limit > 0 && <Meter label="Tokens" value={l.tpm_used} max={l.tpm_limit} text={`${l.tpm_used.toLocaleString('en')} of ${l.tpm_limit.toLocaleString('en')} in the last minute`} />}
            </>
          ) },
          { title: 'For', cell: l => <>{scopeOf(l.policy)}<ByFile of={l.policy} /></> },
          { title: 'Traffic', cell: l => (l.policy.traffic_type === 'all' ? 'models and servers' : l.policy.traffic_type === 'llm' ? 'models' : 'servers') },
          { title: 'State', cell: l => (l.degraded ? <Tag tone="bad">Counted by this node alone</Tag> : l.policy.enabled ? <Tag tone="good">In force</Tag> : <Tag tone="quiet">Switched off</Tag>) },
          { title: 'Acts', kind: 'end', cell: l => administers && <button type="button" class="quiet danger" onClick={() => { setEnding(l.policy); }}>Delete<span class="unseen"> {show(l.policy.name, 60)}</span></button> },
        ]} />
      )}
      {making && (
        <Make title="New limit" act="Make the limit" path={limits} close={() => { setMaking(false); }} made={list.reload}
          body={f => ({ name: String(f.get('name')), requests_per_minute: Number(f.get('rpm')) || null, tokens_per_minute: Number(f.get('tpm')) || null, traffic_type: String(f.get('traffic')), ...scoped(f) })}>
          <>
            <label for="rpm">Requests a minute</label><input id="rpm" name="rpm" type="number" min="1" placeholder="no bound" />
            <label for="tpm">Tokens a minute</label><input id="tpm" name="tpm" type="number" min="1" placeholder="no bound" />
            <label for="traffic">Traffic</label><select id="traffic" name="traffic"><option value="all">models and servers</option><option value="llm">models</option><option value="mcp">servers</option></select>
            <Scope />
          </>
        </Make>
      )}
      {ending && <Delete what={ending} path={limits} effect="Calls that it holds up go on at once." close={() => { setEnding(undefined); }} done={list.reload} />}
    </Screen>
  );
}

const groups: [string, string][] = [['model', 'model'], ['model_alias', 'alias'], ['user_id', 'user'], ['api_key_id', 'API key'], ['agent_id', 'agent']];

const measures: [string, string, (r: UsageRow) => number, (n: number) => string][] = [
  ['cost', 'Cost', r => r.cost, dollars],
  ['requests', 'Requests', r => r.requests, n => n.toLocaleString('en')],
  ['tokens', 'Tokens', r => r.input_tokens + r.output_tokens, n => n.toLocaleString('en')],
];

const hourly = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' });
const daily = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** OverTime draws one number of the usage, by hours for a day and by days (in UTC, as they are counted) otherwise. */
function OverTime({ from, days }: { from: string; days: number }): JSX.Element {
  const of = parameters.value.get('of') ?? 'cost';
  const bucket = days > 1 ? 'day' : 'hour';
  const sums = useLoad<Usages>(`/api/llm-gateway/admin/usage${query({ bucket, from })}`, 30);
  const [, label, value, written] = measures.find(([id]) => id === of) ?? measures[0] as typeof measures[number];
  return (
    <Section title="Over time" act={<select aria-label="What the chart shows" value={of} onChange={event => { set({ of: event.currentTarget.value }); }}>{measures.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select>}>
      {sums.error && <Problem error={sums.error} retry={() => { void sums.reload(); }} />}
      {!sums.data && !sums.error && <Waiting rows={2} />}
      {sums.data && <Chart label={label} bars={sums.data.data.map(r => ({ at: r[bucket] ?? '', value: value(r) }))} written={written} named={at => (days > 1 ? daily : hourly).format(new Date(at))} />}
    </Section>
  );
}

export function Usage(): JSX.Element {
  const by = parameters.value.get('by') ?? 'model';
  const days = Number(parameters.value.get('days') ?? '30');
  const from = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - days * 86_400_000).toISOString();
  const path = `/api/llm-gateway/admin/usage${query({ group_by: by, from })}`;
  const sums = useLoad<Usages>(path, 30);
  const rows = [...sums.data?.data ?? []].sort((a, b) => b.cost - a.cost || b.requests - a.requests);
  const total = rows.reduce((sum, r) => sum + r.cost, 0);
  return (
    <Screen title="Usage" about="What models were used, and what they cost by the prices of the configuration.">
      <form class="filters" onSubmit={event => { event.preventDefault(); }}>
        <label><span>By</span><select value={by} onChange={event => { set({ by: event.currentTarget.value }); }}>{groups.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select></label>
        <label><span>In the last</span><select value={String(days)} onChange={event => { set({ days: event.currentTarget.value }); }}>{[1, 7, 30, 90].map(d => <option key={d} value={d}>{d === 1 ? 'day' : `${d} days`}</option>)}</select></label>
      </form>
      {sums.error && <Problem error={sums.error} retry={() => { void sums.reload(); }} />}
      {!sums.data && !sums.error && <Waiting />}
      {sums.data && rows.length === 0 && <Empty icon="budgets" title="No model was used in this time" />}
      {rows.length > 0 && <OverTime from={from} days={days} />}
      {rows.length > 0 && (
        <Section title={`${dollars(total)} in all`}>
          <Table label="Usage" rows={rows} id={r => String(r[by as keyof typeof r] ?? '')} from={path} columns={[
            { title: groups.find(([id]) => id === by)?.[1] ?? by, kind: 'wide', cell: r => <Meter label={show(String(r[by as keyof typeof r] ?? '') || 'none', 80)} value={r.cost} max={total} text={dollars(r.cost)} /> },
            { title: 'Requests', cell: r => r.requests.toLocaleString('en') },
            { title: 'Tokens in', cell: r => r.input_tokens.toLocaleString('en') },
            { title: 'Tokens out', cell: r => r.output_tokens.toLocaleString('en') },
          ]} />
        </Section>
      )}
    </Screen>
  );
}
