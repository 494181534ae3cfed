// A smart model: where a request would go, and how often it chooses as people would.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { goesOn, useFollow, useLoad } from '../../load';
import { Link } from '../../router';
import { can, useMe } from '../../session';
import { count, show } from '../../text';
import { Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Table } from '../../ui/table';
import type { Job } from '../../types';
import type { SmartModel } from './models';
import { address, SmartForm, Trial } from './smartform';

interface Evaluated {
  right: number;
  low: number;
  high: number;
  failed: number;
  confusion: number[][];
  baseline_slot: number;
  worse_than_baseline: boolean;
}

/** Confusion shows how many examples of each slot went where. */
function Confusion({ of: model, result }: { of: SmartModel; result: Evaluated }): JSX.Element {
  const slots = model.slots.map((s, i) => `${i} ${show(s.model_alias, 40)}`);
  return (
    <>
      <p>{count(result.right, 'example')} went to the right slot, <strong>{result.low} too low, {result.high} too high</strong>{result.failed > 0 && `; for ${result.failed} nobody answered`}.</p>
      {result.worse_than_baseline && <p class="warningtext">Always taking slot {result.baseline_slot} would be right more often.</p>}
      <Table label="Examples by slot" rows={result.confusion.map((row, want) => ({ row, want }))} id={r => String(r.want)} columns={[
        { title: 'Should go to', kind: 'wide', cell: r => slots[r.want] ?? r.want },
        ...slots.map((title, i) => ({ title: `Went to ${title}`, cell: (r: { row: number[]; want: number }) => (i === r.want ? <strong>{r.row[i] ?? 0}</strong> : r.row[i] ?? 0) })),
      ]} />
    </>
  );
}

/** Evaluation has the model choose for examples whose slot is known. */
function Evaluation({ of: model }: { of: SmartModel }): JSX.Element {
  const [started, setStarted] = useState<Job<Evaluated>>();
  const [error, setError] = useState<Failure>();
  const now = useFollow<Job<Evaluated>>(started ? `/api/jobs/${started.id}` : '', job => !goesOn(job));
  const job = now.data ?? started;
  const runs = job !== undefined && goesOn(job);
  const start = async (form: HTMLFormElement): Promise<void> => {
    const examples = String(new FormData(form).get('examples')).split('\n').filter(line => line.trim()).map(line => {
      const [slot = '', ...input] = line.split(':');
      return { slot: Number(slot), input: input.join(':').trim() };
    });
    setError(undefined);
    try {
      setStarted(await call<Job<Evaluated>>('POST', `${address}/${model.id}/eval`, { examples }));
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
  };
  return (
    <Section title="Does it choose well?">
      <form class="form" onSubmit={event => { event.preventDefault(); void start(event.currentTarget); }}>
        <label for="examples">Examples</label>
        <textarea id="examples" name="examples" rows={5} required placeholder={'0: Hi there!\n1: Prove that there are infinitely many primes.'} aria-describedby="exampleshint" />
        <p id="exampleshint" class="small hint">On each line the slot that it should go to, a colon, and the request. The tokens of the model that chooses count for you.</p>
        <div class="buttons start"><button type="submit" disabled={runs}>Evaluate</button>{runs && <progress aria-label="Evaluation" value={job.progress.done} max={job.progress.total || 1} />}</div>
      </form>
      {error && <Problem error={error} />}
      {job?.problem && <p class="warningtext">{show(job.problem, 300)}</p>}
      {job?.result && <div role="status"><Confusion of={model} result={job.result} /></div>}
    </Section>
  );
}

export function SmartModelScreen({ name }: { name: string }): JSX.Element {
  const loaded = useLoad<SmartModel>(`${address}/${encodeURIComponent(name)}`);
  const administers = can(useMe().data, 'administer');
  const [changing, setChanging] = useState(false);
  const m = loaded.data;
  return (
    <>
      <p class="back"><Link to="/organization/models?tab=smart">Models</Link></p>
      <Screen title={m ? show(m.model_alias, 80) : 'Smart model'} about={m?.description ? show(m.description, 300) : undefined}>
        {loaded.error && <Problem error={loaded.error} retry={() => { void loaded.reload(); }} />}
        {!m && !loaded.error && <Waiting />}
        {m && (
          <>
            <p>{m.enabled ? <Tag tone="good">In use</Tag> : <Tag tone="quiet">Switched off</Tag>} {m.determiner_model_alias && <>The alias <span class="mono">{show(m.determiner_model_alias, 80)}</span> chooses. </>}When it cannot, slot {m.default_slot_on_failure}.{m.sticky && ' A conversation stays where it began.'}</p>
            {administers && <div class="buttons start spaced"><button type="button" onClick={() => { setChanging(true); }}>Change it</button></div>}
            {changing && <SmartForm was={m} close={() => { setChanging(false); }} made={loaded.reload} />}
            <Section title="Slots">
              <Table label="Slots" rows={m.slots.map((s, i) => ({ ...s, i }))} id={s => String(s.i)} columns={[
                { title: 'Slot', cell: s => s.i },
                { title: 'For', kind: 'wide', cell: s => show(s.label, 300) || <span class="muted">no label</span> },
                { title: 'Alias', cell: s => <span class="mono">{show(s.model_alias, 80)}</span> },
                { title: 'From tokens', cell: s => (s.i === 0 ? 0 : m.context_breakpoints[s.i - 1]?.toLocaleString('en') ?? '–') },
              ]} />
            </Section>
            <Section title="Where would a request go?"><Trial model={() => ({ policy_id: m.id })} /></Section>
            {administers && <Evaluation of={m} />}
          </>
        )}
      </Screen>
    </>
  );
}
