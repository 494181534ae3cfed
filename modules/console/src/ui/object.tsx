// What is done to every object of an organization: making one, changing it, and deleting it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../api';
import { show } from '../text';
import { Problem } from './basics';
import { Confirm, Dialog } from './dialog';
import { toast } from './toast';

/** Make is a form for an object that has a name: a new one, or was, which it changes. */
export function Make({ title, named = 'Name', act, path, was, body, close, made, children }: {
  title: string; named?: string; act: string; path: string; was?: Ending | undefined; body: (fields: FormData) => unknown; close: () => void; made: () => Promise<void>; children: JSX.Element;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const make = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await (was ? call('PUT', `${path}/${was.id}`, body(new FormData(form))) : call('POST', path, body(new FormData(form))));
      toast(was ? `${show(was.name, 60)} is changed.` : `${act}: done.`);
      await made();
      close();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={event => { event.preventDefault(); void make(event.currentTarget); }}>
        <label for="itsname">{named}</label>
        <input id="itsname" name="name" required maxLength={255} autocomplete="off" defaultValue={was?.name} />
        {children}
        {error && <Problem error={error} />}
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class="main" disabled={busy}>{act}</button></div>
      </form>
    </Dialog>
  );
}

/** Ending names the object that somebody is about to delete or to change. */
export interface Ending {
  id: string;
  name: string;
}

/** Delete asks before an object is deleted. effect says what that does. */
export function Delete({ what, path, effect, close, done }: { what: Ending; path: string; effect: string; close: () => void; done: () => Promise<void> }): JSX.Element {
  return (
    <Confirm title={`Delete ${show(what.name, 60)}?`} act="Delete it" close={close} run={async () => {
      await call('DELETE', `${path}/${what.id}`);
      toast(`${show(what.name, 60)} is deleted.`);
      await done();
    }}><p>{effect}</p></Confirm>
  );
}
