// A dialog over the page. The browser's own element keeps the focus in it, and gives it back.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Failure } from '../api';
import { Problem } from './basics';

/** Dialog is open as long as it is in the page. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => { if (before instanceof HTMLElement && before.isConnected) before.focus(); };
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={(event: Event) => { event.preventDefault(); close(); }}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** Confirm asks before something ends. It says what ends, and shows why it did not. */
export function Confirm({ title, act, close, run, children }: {
  title: string; act: string; close: () => void; run: () => Promise<void>; children: ComponentChildren;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const confirm = async (): Promise<void> => {
    setBusy(true);
    try {
      await run();
      close();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      {children}
      {error && <Problem error={error} />}
      <div class="buttons">
        <button type="button" onClick={close}>Keep it</button>
        <button type="button" class="danger" disabled={busy} onClick={() => { void confirm(); }}>{act}</button>
      </div>
    </Dialog>
  );
}
