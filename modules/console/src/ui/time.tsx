// Times: relative for a glance, exact on hover, in the reader's zone.
import { signal } from '@preact/signals';
import type { JSX } from 'preact';

/** minute changes once a minute, so that relative times stay true. */
const minute = signal(0);
setInterval(() => { if (!document.hidden) minute.value++; }, 30_000);

const near = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'long' });
const steps: [Intl.RelativeTimeFormatUnit, number][] = [['day', 86_400], ['hour', 3_600], ['minute', 60]];

/** ago writes a time as seen from now. It never rounds up. */
export function ago(text: string): string {
  const seconds = (Date.parse(text) - Date.now()) / 1000;
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return near.format(Math.trunc(seconds / size), unit);
  }
  return seconds > 0 ? 'in less than a minute' : 'just now';
}

/** Time shows a time of the API; none is a word of its own. */
export function Time({ at, none = 'never' }: { at: string | null; none?: string }): JSX.Element {
  void minute.value;
  if (!at) return <span class="muted">{none}</span>;
  return <time dateTime={at} title={exact.format(new Date(at))}>{ago(at)}</time>;
}
