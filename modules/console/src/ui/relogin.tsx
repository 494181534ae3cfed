// The login that some acts need. It happens in a tab of its own, so that the form on this page stays as it is.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { asked } from '../api';
import { href } from '../router';
import { Empty, Screen } from './basics';
import { Dialog } from './dialog';

/** channel tells the console's other tabs of a login. It carries no data that anybody believes. */
const channel = 'durward login';

/** Relogin leads to the login while an act waits for it, and goes on after it. */
export function Relogin(): JSX.Element | null {
  const waiting = asked.value;
  useEffect(() => {
    if (!waiting) return;
    const told = new BroadcastChannel(channel);
    told.onmessage = waiting.go;
    return () => { told.close(); };
  }, [waiting]);
  if (!waiting) return null;
  const login = `${waiting.login}&${new URLSearchParams({ return: href('/again') }).toString()}`;
  return (
    <Dialog title="Log in again for this" close={waiting.leave}>
      <p>The gateway does this only within five minutes of a login, to be sure that it is you. What you typed stays here, and is sent by itself afterwards.</p>
      <div class="buttons">
        <button type="button" onClick={waiting.leave}>Cancel</button>
        <a class="button main" href={login} target="_blank" rel="noopener">Log in in a new tab</a>
      </div>
    </Dialog>
  );
}

/** Again is where such a login ends. */
export function Again(): JSX.Element {
  useEffect(() => {
    const telling = new BroadcastChannel(channel);
    telling.postMessage('');
    telling.close();
  }, []);
  return <Screen title="You are logged in"><Empty icon="check" title="Your other tab goes on. You can close this one." /></Screen>;
}
