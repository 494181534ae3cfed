// The form of a smart model, and the question where a request would go.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { call, Failure } from '../../api';
import { count, show, words } from '../../text';
import { Problem } from '../../ui/basics';
import { Icon } from '../../ui/icons';
import { Make } from '../../ui/object';
import type { SmartModel } from './models';

export const address = '/api/llm-gateway/admin/smart-models';

interface Chosen {
  target_model_alias: string;
  decision: { slot: number; label: string; floor: number; answer: number | null; reason: string; estimated_tokens: number };
}

/** Trial shows where a request would go, and sends nothing there. model names the smart model, or holds one that is not kept yet. */
export function Trial({ model }: { model: (around: HTMLFormElement | null) => object }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [chosen, setChosen] = useState<Chosen>();
  const input = useRef<HTMLTextAreaElement>(null);
  const ask = async (): Promise<void> => {
    const field = input.current;
    if (!field?.value.trim()) return field?.focus();
    setBusy(true);
    setError(undefined);
    try {
      setChosen(await call<Chosen>('POST', `${address}/preview`, { ...model(field.form), input: field.value }));
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setChosen(undefined);
      setError(failed);
    }
    setBusy(false);
  };
  return (
    <div class="form">
      <label for="input">What somebody asks</label>
      <textarea id="input" ref={input} rows={3} />
      <div class="buttons start"><button type="button" disabled={busy} onClick={() => { void ask(); }}>Choose</button></div>
      {error && <Problem error={error} />}
      {chosen && (
        <div class="panel" role="status">
          <p>It would go to <strong class="mono">{show(chosen.target_model_alias, 80)}</strong>, slot {chosen.decision.slot}, because of: {words(chosen.decision.reason)}.</p>
          <p class="small">About {count(chosen.decision.estimated_tokens, 'token')}. The lowest slot for that length is {chosen.decision.floor}. {chosen.decision.answer === null ? 'Nobody was asked, or nobody answered.' : `The answer was ${chosen.decision.answer}.`}</p>
        </div>
      )}
    </div>
  );
}

/** Slots asks for the aliases to choose from. */
function Slots({ of }: { of: SmartModel['slots'] }): JSX.Element {
  const [rows, setRows] = useState(() => (of.length > 0 ? of.map((_, i) => i) : [0]));
  return (
    <fieldset class="targets">
      <legend>Slots, from the cheapest to the most capable</legend>
      {rows.map((row, i) => (
        <div key={row} class="target slot">
          <label>Alias of slot {i}<input name="slot" required maxLength={255} autocomplete="off" defaultValue={of[row]?.model_alias} /></label>
          <label>Requests that slot {i} is for<input name="label" maxLength={1024} autocomplete="off" placeholder="proofs, planning" defaultValue={of[row]?.label} /></label>
          {rows.length > 1 && <button type="button" class="quiet danger" onClick={() => { setRows(rows.filter(r => r !== row)); }}>Remove<span class="unseen"> slot {i}</span></button>}
        </div>
      ))}
      <div class="buttons start"><button type="button" class="quiet" onClick={() => { setRows([...rows, Math.max(...rows, of.length - 1) + 1]); }}><Icon name="plus" />One more slot</button></div>
    </fieldset>
  );
}

/** read returns the smart model that is typed. */
function read(f: FormData): object {
  const text = (name: string): string => String(f.get(name) ?? '').trim();
  const labels = f.getAll('label').map(value => String(value).trim());
  return {
    model_alias: text('name'), description: text('about'), enabled: f.has('enabled'), sticky: f.has('sticky'), determiner_model_alias: text('determiner') || null,
    slots: f.getAll('slot').map((alias, i) => ({ model_alias: String(alias).trim(), label: labels[i] ?? '' })),
    context_breakpoints: text('breakpoints').split(/[\s,]+/).filter(Boolean).map(Number), default_slot_on_failure: Number(text('default')),
    ...(text('chars') && { determiner_input_max_chars: Number(text('chars')) }),
  };
}

/** SmartForm makes a smart model, or changes was. What is typed can be tried before it is kept. */
export function SmartForm({ was, close, made }: { was: SmartModel | undefined; close: () => void; made: () => Promise<void> }): JSX.Element {
  return (
    <Make title={was ? `Change ${show(was.model_alias, 60)}` : 'New smart model'} named="Alias" act={was ? 'Keep the changes' : 'Make the smart model'} path={address}
      was={was && { id: was.id, name: was.model_alias }} close={close} made={made} body={read}>
      <>
        <Slots of={was?.slots ?? []} />
        <label for="determiner">Alias that reads the request and chooses</label><input id="determiner" name="determiner" autocomplete="off" defaultValue={was?.determiner_model_alias ?? ''} />
        <label for="chars">Characters of the request that it reads</label><input id="chars" name="chars" type="number" min="1" max="1000000" placeholder="4000" defaultValue={was && String(was.determiner_input_max_chars)} />
        <label for="breakpoints">Tokens from which the next slot is the lowest</label><input id="breakpoints" name="breakpoints" autocomplete="off" placeholder="8000, 100000" pattern="[0-9 ,]*" defaultValue={was?.context_breakpoints.join(', ')} />
        <label for="default">Slot when nobody can choose, from 0</label><input id="default" name="default" type="number" min="0" max="32" defaultValue={String(was?.default_slot_on_failure ?? 0)} required />
        <label for="about">What it is for</label><input id="about" name="about" maxLength={1000} autocomplete="off" defaultValue={was?.description} />
        <label class="check"><input type="checkbox" name="enabled" defaultChecked={was?.enabled ?? true} />In use</label>
        <label class="check"><input type="checkbox" name="sticky" defaultChecked={was?.sticky ?? false} />A conversation stays where it began</label>
        <details class="spaced"><summary>Try it before it is kept</summary><Trial model={form => ({ policy: form ? read(new FormData(form)) : {} })} /></details>
        {was && <p class="small hint">Calls that come from then on go by the changes. With another name, calls with the former one are refused.</p>}
      </>
    </Make>
  );
}
