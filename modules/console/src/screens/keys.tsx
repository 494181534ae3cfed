// My keys: API keys for programs that cannot log in.
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../api';
import { useLoad } from '../load';
import { show } from '../text';
import type { ApiKey, NewKey } from '../types';
import { Empty, Problem, Screen, Tag, Waiting } from '../ui/basics';
import { Code } from '../ui/code';
import { Confirm, Dialog } from '../ui/dialog';
import { Icon } from '../ui/icons';
import { Table } from '../ui/table';
import { Time } from '../ui/time';
import { toast } from '../ui/toast';

/** lifetimes are the choices, in days; 0 is no end. */
const lifetimes: [number, string][] = [[7, '7 days'], [30, '30 days'], [90, '90 days'], [365, 'a year'], [0, 'no end']];

/** state says whether a key works. */
function state(k: ApiKey): JSX.Element {
  if (k.revoked_at) return <Tag tone="quiet">Revoked</Tag>;
  if (k.disabled) return <Tag tone="warning">Disabled</Tag>;
  if (k.expires_at && Date.parse(k.expires_at) <= Date.now()) return <Tag tone="quiet">Expired</Tag>;
  return <Tag tone="good">In use</Tag>;
}

/** Secret shows the secret of a key this once. */
const Secret = ({ of, close, children }: { of: NewKey; close: () => void; children?: ComponentChildren }): JSX.Element => (
  <Dialog title={`The key ${show(of.name, 60)}`} close={close}>
    <p>Copy it now, and keep it where only the program can read it. <strong>It is shown this once.</strong></p>
    <Code text={of.key} label="the key" />
    {children}
    <div class="buttons"><button type="button" class="main" onClick={close}>I have copied it</button></div>
  </Dialog>
);

/** ends are the choices for the end of a former key, in hours; 0 is at once. */
const ends: [number, string][] = [[0, 'at once'], [1, 'in an hour'], [24, 'in a day'], [168, 'in a week'], [720, 'in 30 days']];

/** Rotate gives a key a new secret, and asks when the former one ends. */
function Rotate({ address, of, close, done }: { address: string; of: ApiKey; close: () => void; done: () => Promise<void> }): JSX.Element {
  const [hours, setHours] = useState(24);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [key, setKey] = useState<NewKey>();
  const rotate = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const body = hours ? { former_ends_at: new Date(Date.now() + hours * 3_600_000).toISOString() } : undefined;
      setKey(await call<NewKey>('POST', `${address}/${of.id}/rotate`, body));
      await done();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  if (key) {
    return <Secret of={key} close={close}><p class="small">The former one, <span class="mono">{show(of.key_prefix)}…</span>, {hours ? <>works until it ends {ends.find(([h]) => h === hours)?.[1]}</> : 'has ended'}.</p></Secret>;
  }
  return (
    <Dialog title={`A new secret for ${show(of.name, 60)}`} close={close}>
      <form onSubmit={event => { event.preventDefault(); void rotate(); }}>
        <label for="former">The former one ends</label>
        <select id="former" value={String(hours)} onChange={event => { setHours(Number(event.currentTarget.value)); }}>{ends.map(([h, text]) => <option key={h} value={h}>{text}</option>)}</select>
        <p class="small hint">{hours
          ? 'Until then both work, and the list shows both: the new one has the same rights, owner and end, and an id of its own.'
          : <>What uses <span class="mono">{show(of.key_prefix)}…</span> stops working at once, until it has the new secret. Open calls and streams end.</>}</p>
        {error && <Problem error={error} />}
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class={hours ? 'main' : 'danger'} disabled={busy}>Make the new secret</button></div>
      </form>
    </Dialog>
  );
}

/** rotates reports whether others than its user may give a key a new secret: one that works, and does not act as its user at MCP servers. */
const rotates = (k: ApiKey): boolean => !k.scopes.includes('mcp') && !(k.expires_at && Date.parse(k.expires_at) <= Date.now());

/** Make asks for a new key, and shows its secret this once. */
function Make({ address, whose, close, made }: { address: string; whose: Whose | undefined; close: () => void; made: () => Promise<void> }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const [key, setKey] = useState<NewKey>();
  const make = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    const days = Number(fields.get('days'));
    setBusy(true);
    setError(undefined);
    try {
      setKey(await call<NewKey>('POST', address, {
        name: String(fields.get('name')), scopes: ['llm'], expires_at: days ? new Date(Date.now() + days * 86_400_000).toISOString() : null, ...whose?.read(fields),
      }));
      await made();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  if (key) return <Secret of={key} close={close} />;
  return (
    <Dialog title="New key" close={close}>
      <form onSubmit={event => { event.preventDefault(); void make(event.currentTarget); }}>
        <label for="keyname">Name</label>
        <input id="keyname" name="name" required maxLength={255} autocomplete="off" aria-describedby="keynamehint" />
        <p id="keynamehint" class="small hint">Name the program that uses it, so that you know later what stops when you revoke it.</p>
        {whose?.fields}
        <label for="keydays">It expires after</label>
        <select id="keydays" name="days">{lifetimes.map(([days, text]) => <option key={days} value={days} selected={days === 90}>{text}</option>)}</select>
        <p class="small hint">The key calls models with {whose ? 'the' : 'your'} limits and budgets{whose && ' of whom it is for'}. MCP servers it does not reach: clients log in for those.</p>
        {error && <Problem error={error} />}
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class="main" disabled={busy}>Make the key</button></div>
      </form>
    </Dialog>
  );
}

/** Whose says for whom the keys of a list are, where they are not the reader's own. */
export interface Whose {
  cell: (key: ApiKey) => ComponentChildren;
  /** fields ask for whom a new key is, and read finds the answer in the form. */
  fields: JSX.Element;
  read: (fields: FormData) => Record<string, string | null>;
  administers: boolean;
}

/** KeyList lists keys, makes, rotates and revokes them. */
export function KeyList({ address, title, about, label, empty, whose }: {
  address: string; title: string; about: string; label: string; empty: JSX.Element; whose?: Whose;
}): JSX.Element {
  const acts = whose?.administers ?? true;
  const keys = useLoad<ApiKey[]>(address);
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<ApiKey>();
  const [rotating, setRotating] = useState<ApiKey>();
  const make = acts && <button type="button" class="main" onClick={() => { setMaking(true); }}><Icon name="plus" />New key</button>;
  return (
    <Screen title={title} about={about} act={make}>
      {keys.error && <Problem error={keys.error} retry={() => { void keys.reload(); }} />}
      {!keys.data && !keys.error && <Waiting />}
      {keys.data?.length === 0 && empty}
      {keys.data && keys.data.length > 0 && (
        <Table label={label} rows={keys.data} id={k => k.id} from={address} columns={[
          { title: 'Name', kind: 'wide', cell: k => <><strong>{show(k.name, 80)}</strong><br /><span class="small mono">{show(k.key_prefix)}…</span></> },
          ...(whose ? [{ title: 'For', cell: whose.cell }] : []),
          { title: 'State', cell: state },
          { title: 'Reaches', cell: k => show(k.scopes.join(', ') || 'all models', 80) },
          { title: 'Last used', cell: k => <Time at={k.last_used_at} /> },
          { title: 'Expires', cell: k => <Time at={k.expires_at} /> },
          { title: 'Acts', kind: 'end', cell: k => acts && !k.revoked_at && (
            <span class="rowacts">
              {whose && rotates(k) && <button type="button" class="quiet" onClick={() => { setRotating(k); }}>Rotate<span class="unseen"> {show(k.name, 80)}</span></button>}
              <button type="button" class="quiet danger" onClick={() => { setEnding(k); }}>Revoke<span class="unseen"> {show(k.name, 80)}</span></button>
            </span>
          ) },
        ]} />
      )}
      {making && <Make address={address} whose={whose} close={() => { setMaking(false); }} made={keys.reload} />}
      {rotating && <Rotate address={address} of={rotating} close={() => { setRotating(undefined); }} done={keys.reload} />}
      {ending && (
        <Confirm title={`Revoke ${show(ending.name, 60)}?`} act="Revoke" close={() => { setEnding(undefined); }} run={async () => {
          await call('DELETE', `${address}/${ending.id}`);
          toast(`The key ${show(ending.name, 60)} is revoked.`);
          await keys.reload();
        }}>
          <p>What uses the key <span class="mono">{show(ending.key_prefix)}…</span> stops working at once. It cannot be brought back.</p>
        </Confirm>
      )}
    </Screen>
  );
}

export const Keys = (): JSX.Element => (
  <KeyList address="/api/llm-gateway/user/api-keys" title="My keys" label="Your API keys" about="API keys for programs that call models and cannot log in."
    empty={<Empty icon="keys" title="You have no key"><p>Make one for a program that calls models through the gateway. MCP clients need none: they log in.</p></Empty>} />
);
