// The editor of a policy: choices for the server's own tools, the same as text, and a trial before it decides.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { goesOn, useFollow, useLoad } from '../../load';
import type { Explanation, Policy, Tool, Rule } from '../../organization';
import { go, Link, parameters } from '../../router';
import { can, useMe } from '../../session';
import { count, show, words } from '../../text';
import type { Job, Page } from '../../types';
import { Empty, Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Confirm } from '../../ui/dialog';
import { toast } from '../../ui/toast';
import { choicesOf, parse, rulesOf, write, type Choice, type Verdict } from './choices';
import { Revisions, Shadow } from './policyhistory';
import { PolicyState, switchTo } from './policies';
import { useOrganizationServers } from './servers';

interface Saved {
  policy: Policy;
  warnings?: string[];
}

/** ToolChoice is the line of one tool: what is decided for it, and for whom. */
function ToolChoice({ tool, note, choice, change }: { tool: string; note?: JSX.Element | undefined; choice: Choice | undefined; change: (c: Choice | undefined) => void }): JSX.Element {
  const label = tool === '*' ? 'every tool' : show(tool, 80);
  const pick = (verdict: string): void => { change(verdict ? { tool, verdict: verdict as Verdict, who: choice?.who ?? '*' } : undefined); };
  return (
    <li class="choice">
      <span class={tool === '*' ? '' : 'mono'}>{label} {note}</span>
      <select aria-label={`Decision on ${label}`} value={choice?.verdict ?? ''} onChange={event => { pick(event.currentTarget.value); }}>
        <option value="">not named</option><option value="allow">allow</option><option value="ask">ask the user</option><option value="deny">deny</option>
      </select>
      <input aria-label={`For whom: ${label}`} value={choice ? (choice.who === '*' ? '' : choice.who) : ''} disabled={!choice} placeholder={choice ? 'everybody' : ''} list="principals" autocomplete="off"
        onChange={event => { if (choice) change({ ...choice, who: event.currentTarget.value.trim() || '*' }); }} />
    </li>
  );
}

/** Choices shows the server's tools with a choice each. */
function Choices({ server, text, setText }: { server: string; text: string; setText: (text: string) => void }): JSX.Element {
  const tools = useLoad<Page<Tool>>(`/api/servers/${server}/tools?limit=100`);
  const [added, setAdded] = useState<string[]>([]);
  const parsed = parse(text);
  if ('error' in parsed) return <p class="warningtext">The text is no list of rules. Mend it first: the choices follow it.</p>;
  const { choices, rest } = choicesOf(parsed.rules);
  const known = new Map(tools.data?.data.map(t => [t.name, t]));
  const names = [...new Set(['*', ...known.keys(), ...choices.map(c => c.tool), ...added])];
  const change = (tool: string, nth: number, next: Choice | undefined): void => {
    const same = choices.filter(c => c.tool === tool);
    const kept = next ? [...same.slice(0, nth), next, ...same.slice(nth + 1)] : same.filter((_, i) => i !== nth);
    const order = names.flatMap(n => (n === tool ? kept : choices.filter(c => c.tool === n)));
    setText(write(rulesOf(order, rest)));
  };
  return (
    <>
      {tools.error && <Problem error={tools.error} retry={() => { void tools.reload(); }} />}
      {tools.data && known.size === 0 && <p class="small">The gateway has seen no tool of this server yet: a client has to list them first. Name them here meanwhile.</p>}
      <ul class="choicelist" aria-label="Tools">
        {names.flatMap(tool => {
          const same = choices.filter(c => c.tool === tool);
          const t = known.get(tool);
          const note = t?.withheld ? <Tag tone="bad">Withheld</Tag> : tool !== '*' && tools.data && !t && !tool.includes('*') ? <Tag tone="warning">Not seen</Tag> : undefined;
          return (same.length ? same : [undefined]).map((choice, i) => (
            <ToolChoice key={`${tool} ${i}`} tool={tool} note={note} choice={choice} change={next => { change(tool, i, next); }} />
          ));
        })}
      </ul>
      <form class="filters" onSubmit={event => {
        event.preventDefault();
        const name = String(new FormData(event.currentTarget).get('tool')).trim();
        if (name) setAdded([...added, name]);
        event.currentTarget.reset();
      }}>
        <label><span>Another tool, or the beginning of names</span><input name="tool" pattern="[A-Za-z0-9_.\/\-]*\*?" placeholder="list_*" autocomplete="off" /></label>
        <button type="submit">Add a line</button>
      </form>
      {rest.length > 0 && <p class="small">{count(rest.length, 'rule')} with conditions, resources or prompts: {rest.map(r => show(r.name, 40)).join(', ')}. See the text.</p>}
    </>
  );
}

const decisions: Record<string, JSX.Element> = { allow: <Tag tone="good">Allowed</Tag>, ask: <Tag tone="warning">Asks the user</Tag>, deny: <Tag tone="bad">Refused</Tag> };

/** Explain answers what the saved policy would decide. */
function Explain({ policy }: { policy: Policy }): JSX.Element {
  const [answer, setAnswer] = useState<Explanation>();
  const [error, setError] = useState<Failure>();
  const list = (text: FormDataEntryValue | null): string[] => String(text ?? '').split(',').map(w => w.trim()).filter(Boolean);
  const ask = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    setError(undefined);
    try {
      setAnswer(await call<Explanation>('POST', '/api/v2/policies/explain', {
        policy_id: policy.id, action: `tools/call:${String(fields.get('tool'))}`, agent: null, roles: list(fields.get('roles')), groups: list(fields.get('groups')),
      }));
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setAnswer(undefined);
      setError(failed);
    }
  };
  return (
    <Section title="What would it decide?">
      <form class="filters" onSubmit={event => { event.preventDefault(); void ask(event.currentTarget); }}>
        <label><span>Tool</span><input name="tool" required autocomplete="off" /></label>
        <label><span>Roles of the caller</span><input name="roles" autocomplete="off" placeholder="none" /></label>
        <label><span>Groups of the caller</span><input name="groups" autocomplete="off" placeholder="none" /></label>
        <button type="submit">Explain</button>
      </form>
      {error && <Problem error={error} />}
      {answer && (
        <div class="panel" role="status">
          <p>{decisions[answer.decision] ?? show(answer.decision)} {show(answer.reason, 600)}</p>
          {answer.notes.map(n => <p key={n} class="small">{show(n, 400)}</p>)}
          {answer.conditions.map(c => <p key={c.expr} class="small mono">{show(c.expr, 300)} → {show(c.error ?? JSON.stringify(c.value), 200)}</p>)}
        </div>
      )}
    </Section>
  );
}

interface Replayed {
  calls: number;
  same: number;
  newly_denied: number;
  newly_allowed: number;
  newly_asking: number;
  not_judged: { calls: number };
  groups: { kind: string; name?: string; former_decision: string; new_decision: string; calls: number }[];
}

/** Replay judges the recorded calls of the last days by the saved policy, and shows what it would have changed. */
function Replay({ policy }: { policy: Policy }): JSX.Element {
  const [started, setStarted] = useState<Job<Replayed>>();
  const [error, setError] = useState<Failure>();
  const now = useFollow<Job<Replayed>>(started ? `/api/jobs/${started.id}` : '', job => !goesOn(job));
  const job = now.data ?? started;
  const runs = job !== undefined && goesOn(job);
  const start = async (days: number): Promise<void> => {
    setError(undefined);
    try {
      setStarted(await call<Job<Replayed>>('POST', `/api/v2/policies/${policy.id}/replay`, { since: new Date(Date.now() - days * 86_400_000).toISOString() }));
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
  };
  const result = job?.result;
  return (
    <Section title="What would it have changed?">
      <form class="filters" onSubmit={event => { event.preventDefault(); void start(Number(new FormData(event.currentTarget).get('days'))); }}>
        <label><span>Calls of the last</span><select name="days">{[1, 7, 30].map(d => <option key={d} value={d} selected={d === 7}>{d === 1 ? 'day' : `${d} days`}</option>)}</select></label>
        <button type="submit" disabled={runs}>Replay</button>
        {runs && <progress aria-label="Replay" value={job.progress.done} max={job.progress.total || 1} />}
      </form>
      {error && <Problem error={error} />}
      {job?.problem && <p class="warningtext">{show(job.problem, 300)}</p>}
      {result && (
        <div class="panel" role="status">
          <p>{count(result.calls, 'recorded call')}: {result.same} the same, <strong>{result.newly_denied} newly refused, {result.newly_allowed} newly allowed, {result.newly_asking} newly held</strong>{result.not_judged.calls > 0 && `, ${result.not_judged.calls} not judged, because the log has not all that the rules look at`}.</p>
          <ul class="plain">{result.groups.map(g => <li key={`${g.kind} ${g.name ?? ''} ${g.new_decision}`} class="small"><span class="mono">{show(g.name ?? g.kind, 80)}</span>: {words(g.former_decision)} → {words(g.new_decision)}, {count(g.calls, 'call')}</li>)}</ul>
        </div>
      )}
    </Section>
  );
}

interface Suggestion {
  policy: { name: string; description: string; mcp_server_id: string; application_ids: string[]; rules: Rule[] } | null;
  calls: number;
  left_out: { id: string; reason: string }[];
  notes: string[];
}

/** Editor edits a policy that is there, or a new one of a server. */
function Editor({ policy, suggested, server, changed }: { policy: Policy | undefined; suggested?: Suggestion['policy'] | undefined; server: string; changed: () => Promise<void> }): JSX.Element {
  const me = useMe();
  const begun = policy ?? suggested;
  const [name, setName] = useState(begun?.name ?? '');
  const [text, setText] = useState(write(begun?.rules ?? []));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [warnings, setWarnings] = useState<string[]>([]);
  const [enabling, setEnabling] = useState<Policy>();
  const parsed = parse(text);
  useEffect(() => { setText(write(begun?.rules ?? [])); setName(begun?.name ?? ''); }, [policy?.id, policy?.revision]);
  const save = async (): Promise<Policy | undefined> => {
    if ('error' in parsed) return undefined;
    setBusy(true);
    setError(undefined);
    try {
      const saved = policy
        ? await call<Saved>('PATCH', `/api/v2/policies/${policy.id}`, { name, rules: parsed.rules })
        : await call<Saved>('POST', '/api/v2/policies', { name, mcp_server_id: server, rules: parsed.rules, application_ids: suggested?.application_ids ?? [], description: suggested?.description ?? '' });
      setWarnings(saved.warnings ?? []);
      toast(`${show(saved.policy.name, 60)} is saved.`);
      await changed();
      return saved.policy;
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  const saveOnly = async (): Promise<void> => {
    const saved = await save();
    if (saved && !policy) go(`/organization/policies/${saved.id}`);
  };
  const enable = async (): Promise<void> => {
    const saved = await save();
    if (saved) setEnabling(saved);
  };
  return (
    <>
      <datalist id="principals"><option value="*">everybody</option>{[...new Set([...(me.data?.roles ?? []).map(r => `role:${r}`), ...(me.data?.groups ?? []).map(g => `group:${g}`)])].map(w => <option key={w} value={w} />)}</datalist>
      <form class="panel form" onSubmit={event => { event.preventDefault(); void saveOnly(); }}>
        <label for="policyname">Name</label>
        <input id="policyname" required maxLength={255} value={name} onInput={event => { setName(event.currentTarget.value); }} autocomplete="off" />
        <p class="small hint">A deny wins over an ask, and an ask over an allow. What no line names is refused. For whom: <code>role:editor</code>, <code>group:support</code>, several with commas.</p>
      </form>
      <div class="beside">
        <Section title="Tools"><Choices server={server} text={text} setText={setText} /></Section>
        <Section title="The same as text">
          <textarea class="mono" rows={Math.min(40, Math.max(16, text.split('\n').length + 1))} spellcheck={false} value={text} aria-label="Rules" aria-invalid={'error' in parsed} aria-describedby="policyproblem" onInput={event => { setText(event.currentTarget.value); }} />
          <p id="policyproblem" class={'error' in parsed ? 'warningtext' : 'small'} role="status">{'error' in parsed ? `Line ${parsed.line}: ${show(parsed.error, 200)}` : count(parsed.rules.length, 'rule')}</p>
        </Section>
      </div>
      {warnings.map(w => <p key={w} class="warningtext">{show(w, 400)}</p>)}
      {error && <Problem error={error} />}
      <div class="buttons start">
        <button type="button" class={policy?.status === 'ACTIVE' ? 'main' : ''} disabled={busy || 'error' in parsed || !name} onClick={() => { void saveOnly(); }}>{policy?.status === 'ACTIVE' ? 'Save: decides at once' : policy ? 'Save' : 'Save as a draft'}</button>
        {policy?.status !== 'ACTIVE' && policy?.status !== 'ARCHIVED' && <button type="button" class="main" disabled={busy || 'error' in parsed || !name} onClick={() => { void enable(); }}>Save and enable</button>}
      </div>
      {enabling && (
        <Confirm title={`Enable ${show(enabling.name, 60)}?`} act="Enable it" close={() => { setEnabling(undefined); if (!policy) go(`/organization/policies/${enabling.id}`); }} run={async () => {
          await switchTo(enabling.id, true);
          toast(`${show(enabling.name, 60)} decides from now on.`);
          await changed();
        }}>
          <p>It decides on the next call. Streams and subscriptions that it no longer allows end.</p>
        </Confirm>
      )}
    </>
  );
}

/** Rules shows the rules of a policy to those who do not edit policies. */
const Rules = ({ policy }: { policy: Policy }): JSX.Element => {
  const text = write(policy.rules);
  return (
    <Section title="Rules">
      <p class="small hintabove">A deny wins over an ask, and an ask over an allow. What no rule names is refused. Policy editors change them.</p>
      <textarea class="mono" readOnly rows={Math.min(40, Math.max(4, text.split('\n').length + 1))} spellcheck={false} value={text} aria-label="Rules" />
    </Section>
  );
};

/** Suggested begins a policy with recorded calls: those that the address chooses. */
function Suggested({ server }: { server: string }): JSX.Element {
  const asked = parameters.value;
  const filter = Object.fromEntries(Object.entries({ mcp_server_id: server, user_id: asked.get('user'), tool: asked.get('tool'), decision: asked.get('decision') }).filter(([, value]) => value));
  const found = useLoad<Suggestion>(`/api/v2/policies/suggest?${JSON.stringify(filter)}`, 0, () => call<Suggestion>('POST', '/api/v2/policies/suggest', { filter }));
  if (found.error) return <Problem error={found.error} retry={() => { void found.reload(); }} />;
  if (!found.data) return <Waiting />;
  const { policy, calls, left_out: left, notes } = found.data;
  return (
    <>
      <div class="panel suggestion" role="status">
        <p>{policy ? `This allows exactly ${count(calls, 'recorded call')}, by the same users through the same agents.` : 'There is no recorded call that a policy could allow.'}{left.length > 0 && ` ${count(left.length, 'call')} cannot be named by a rule.`}</p>
        {notes.map(n => <p key={n} class="small">{show(n, 400)}</p>)}
      </div>
      <Editor policy={undefined} suggested={policy} server={server} changed={() => Promise.resolve()} />
    </>
  );
}

export function NewPolicy(): JSX.Element {
  const me = useMe();
  const servers = useOrganizationServers();
  const server = parameters.value.get('server') ?? '';
  const found = servers.data?.find(s => s.id === server);
  return (
    <>
      <p class="back"><Link to="/organization/policies">Policies</Link></p>
      <Screen title="A new policy" about={found ? `For ${show(found.name, 80)}` : 'A policy is for one server.'}>
        {servers.error && <Problem error={servers.error} retry={() => { void servers.reload(); }} />}
        {!servers.data && !servers.error && <Waiting />}
        {servers.data && !found && (servers.data.length === 0
          ? <Empty icon="servers" title="There is no server yet">{can(me.data, 'operate_servers') ? <Link to="/organization/servers/new" class="button main">Add a server</Link> : <p>An operator or administrator adds servers.</p>}</Empty>
          : <ul class="plain pick">{servers.data.map(s => <li key={s.id}><Link to={`/organization/policies/new?server=${s.id}`} class="button">{show(s.name, 80)}</Link></li>)}</ul>)}
        {found && parameters.value.get('from') !== 'calls' && <p class="hintabove"><Link to={`/organization/policies/new?server=${found.id}&from=calls`}>Begin with the calls of the last week</Link></p>}
        {found && (parameters.value.get('from') === 'calls' ? <Suggested key={location.search} server={found.id} /> : <Editor policy={undefined} server={found.id} changed={() => Promise.resolve()} />)}
      </Screen>
    </>
  );
}

export function PolicyScreen({ name }: { name: string }): JSX.Element {
  const loaded = useLoad<Saved>(`/api/v2/policies/${encodeURIComponent(name)}`);
  const me = useMe();
  const policy = loaded.data?.policy;
  if (!policy) return <Screen title="Policy">{loaded.error ? <Problem error={loaded.error} retry={() => { void loaded.reload(); }} /> : <Waiting />}</Screen>;
  return (
    <>
      <p class="back"><Link to="/organization/policies">Policies</Link></p>
      <Screen title={show(policy.name, 80)} about={<><PolicyState status={policy.status} /> {show(policy.mcp_server_name, 80)}, {policy.application_names.length ? `for ${show(policy.application_names.join(', '), 120)}` : 'for all agents'}, revision {policy.revision}</>}>
        {can(me.data, 'edit_policies') ? <Editor policy={policy} server={policy.mcp_server_id} changed={loaded.reload} /> : <Rules policy={policy} />}
        <Explain policy={policy} />
        {can(me.data, 'edit_policies') && policy.status === 'DRAFT' && <Shadow policy={policy} changed={loaded.reload} />}
        {can(me.data, 'edit_policies') && <Replay policy={policy} />}
        {can(me.data, 'edit_policies') && <Revisions policy={policy} changed={loaded.reload} />}
      </Screen>
    </>
  );
}
