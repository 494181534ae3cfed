// What a policy was, and what a draft would be: its revisions, and the decisions that it would have changed.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { useLoad } from '../../load';
import type { Policy } from '../../organization';
import { Link } from '../../router';
import { can, useMe } from '../../session';
import { count, show, words } from '../../text';
import type { Page } from '../../types';
import { Problem, Section, Tag } from '../../ui/basics';
import { ValueDiff } from '../../ui/diff';
import { Confirm } from '../../ui/dialog';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { toast } from '../../ui/toast';

interface Revision {
  revision: number;
  user_name: string;
  created_at: string;
  changes: { field: string; before: unknown; after: unknown }[];
}

/** kept are the members that a restore leaves alone: whether the policy decides, and for which server. */
const kept = ['status', 'shadow', 'mcp_server_id'];

/** restored returns the members as they were after a revision: what the later ones found. The newest comes first. */
function restored(revisions: Revision[], to: number): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const r of revisions.filter(r => r.revision > to)) {
    for (const c of r.changes) if (!kept.includes(c.field)) members[c.field] = c.before;
  }
  return members;
}

/** Revisions lists the changes of a policy, and brings a former state back. */
export function Revisions({ policy, changed }: { policy: Policy; changed: () => Promise<void> }): JSX.Element | null {
  const edits = can(useMe().data, 'edit_policies');
  const revisions = useLoad<Page<Revision>>(`/api/v2/policies/${policy.id}/revisions?limit=100`);
  const [back, setBack] = useState<number>();
  if (!revisions.data) return revisions.error ? <Problem error={revisions.error} /> : null;
  const all = revisions.data.data;
  const members = back === undefined ? {} : restored(all, back);
  return (
    <Section title="Changes">
      <ul class="plain">
        {all.map(r => (
          <li key={r.revision}>
            <details class="why">
              <summary>Revision {r.revision}: {r.revision === 1 ? 'created' : show(r.changes.map(c => words(c.field)).join(', '), 200)}</summary>
              <p class="small"><Time at={r.created_at} />{r.user_name && `, by ${show(r.user_name, 80)}`}</p>
              {r.changes.map(c => <div key={c.field}><p class="small"><strong>{words(c.field)}</strong></p><ValueDiff before={c.before} after={c.after} /></div>)}
              {edits && Object.keys(restored(all, r.revision)).length > 0 && <button type="button" class="quiet" onClick={() => { setBack(r.revision); }}>Back to revision {r.revision}</button>}
            </details>
          </li>
        ))}
      </ul>
      {back !== undefined && (
        <Confirm title={`Back to revision ${back}?`} act="Bring it back" close={() => { setBack(undefined); }} run={async () => {
          await call('PATCH', `/api/v2/policies/${policy.id}`, members);
          toast(`${show(policy.name, 60)} is as it was at revision ${back}.`);
          await Promise.all([changed(), revisions.reload()]);
        }}>
          <p>This brings back {Object.keys(members).map(words).join(', ')}, as a new revision. {policy.status === 'ACTIVE' ? 'It decides on the next call.' : 'Whether the policy decides stays as it is.'}</p>
        </Confirm>
      )}
    </Section>
  );
}

interface Report {
  from: string;
  calls: number;
  different: number;
  counts: { decision: string; would_decide: string; count: number }[];
  data: { time: string; audit_id: string; user_id: string; method: string; tool: string; decision: string; rule: string | null; would_decide: string; would_rule: string | null }[];
}

/** Shadow tries a draft on the calls that happen, and shows what it would have decided otherwise. */
export function Shadow({ policy, changed }: { policy: Policy; changed: () => Promise<void> }): JSX.Element {
  const path = `/api/v2/policies/${policy.id}/shadow?limit=20`;
  const report = useLoad<Report>(path, policy.shadow ? 15 : 0);
  const [error, setError] = useState<Failure>();
  const turn = async (): Promise<void> => {
    setError(undefined);
    try {
      await call('PATCH', `/api/v2/policies/${policy.id}`, { shadow: !policy.shadow });
      await changed();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
  };
  const r = report.data;
  return (
    <Section title="What would it change, from now on?" act={<button type="button" onClick={() => { void turn(); }}>{policy.shadow ? 'Stop watching' : 'Watch calls'}</button>}>
      {error && <Problem error={error} />}
      {!policy.shadow && <p class="muted">While the draft watches, each call is judged by it too. It changes nothing.</p>}
      {policy.shadow && report.error && <Problem error={report.error} />}
      {policy.shadow && r && (
        <>
          <p role="status">{count(r.different, 'call')} of {r.calls.toLocaleString('en')} since <Time at={r.from} /> would be decided otherwise{r.counts.map(c => `; ${words(c.decision)} → ${words(c.would_decide)}: ${c.count}`).join('')}.</p>
          {r.data.length > 0 && (
            <Table label="Calls decided otherwise" rows={r.data} id={c => c.audit_id} from={path} columns={[
              { title: 'Tool', kind: 'wide', cell: c => <span class="mono">{show(c.tool || c.method, 80)}</span> },
              { title: 'Who', cell: c => <Link to={`/organization/people/${c.user_id}`}>look</Link> },
              { title: 'Was', cell: c => <>{words(c.decision)}{c.rule && <><br /><span class="small">{show(c.rule, 60)}</span></>}</> },
              { title: 'Would be', cell: c => <><Tag tone={c.would_decide === 'deny' ? 'bad' : c.would_decide === 'ask' ? 'warning' : 'good'}>{words(c.would_decide)}</Tag>{c.would_rule && <><br /><span class="small">{show(c.would_rule, 60)}</span></>}</> },
              { title: 'When', cell: c => <Time at={c.time} /> },
            ]} />
          )}
        </>
      )}
    </Section>
  );
}
