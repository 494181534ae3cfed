// Small parts that every screen uses.
import type { ComponentChildren, JSX } from 'preact';
import { Failure, loggedOut } from '../api';
import { Icon, type IconName } from './icons';

/** Screen is the frame of a screen: its heading, what it is for, and its main act. */
export function Screen({ title, about, act, children }: {
  title: string; about?: ComponentChildren; act?: ComponentChildren; children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <div class="head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {about && <p class="about">{about}</p>}
        </div>
        {act && <div class="acts">{act}</div>}
      </div>
      {children}
    </>
  );
}

/** Section is a part of a screen with a heading of its own. */
export function Section({ title, act, children }: { title: string; act?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <section class="section">
      <div class="sectionhead"><h2>{title}</h2>{act}</div>
      {children}
    </section>
  );
}

export type Tone = 'good' | 'bad' | 'warning' | 'quiet';

/** Tag says a state in a word. Its mark differs by shape, not by colour alone. */
export const Tag = ({ tone, children }: { tone: Tone; children: ComponentChildren }): JSX.Element => (
  <span class={`tag ${tone}`}><span class="mark" aria-hidden="true" />{children}</span>
);

/** Empty says that there is nothing yet, and what to do first. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <Icon name={icon} />
      <p class="emptytitle">{title}</p>
      {children}
    </div>
  );
}

/** Problem shows an error: what happened, what to do, and a line for who looks after the gateway. */
export function Problem({ error, retry }: { error: Failure; retry?: (() => void) | undefined }): JSX.Element | null {
  if (loggedOut.value) return null; // the shell says so, once
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <div>
        <p><strong>{error.message}</strong> {error.advice}</p>
        <p class="small mono">{error.request}{error.reference && ` · ${error.reference}`}</p>
      </div>
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** Waiting shows the shape of what comes. */
export const Waiting = ({ rows = 3 }: { rows?: number }): JSX.Element => (
  <div class="waiting" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, i) => <div key={i} class="bar" />)}</div>
);

/** Meter shows how full something is, in words as well. */
export function Meter({ label, value, max, text }: { label: string; value: number; max: number; text: string }): JSX.Element {
  return (
    <div class="meter">
      <span>{label}</span><span class="small">{text}</span>
      <meter aria-label={label} value={value} max={max || 1} high={max * 0.8} optimum={0}>{text}</meter>
    </div>
  );
}

/** ByFile says that an applied file declares an object: what is changed here comes back with the next one. */
export function ByFile({ of }: { of: { managed_by_file?: boolean } }): JSX.Element | null {
  return of.managed_by_file ? <> <Tag tone="quiet">Managed by file</Tag></> : null;
}
