// Short news about what the reader did, at the edge of the page.
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Icon } from './icons';

const shown = signal<{ id: number; text: string; bad: boolean }[]>([]);
let last = 0;

/** toast shows a sentence for a while, and has it read out. */
export function toast(text: string, bad = false): void {
  const id = ++last;
  shown.value = [...shown.value, { id, text, bad }];
  setTimeout(() => { shown.value = shown.value.filter(t => t.id !== id); }, bad ? 12_000 : 6_000);
}

/** Toasts is the place of the news. It is in the page from the beginning: screen readers listen only then. */
export const Toasts = (): JSX.Element => (
  <div class="toasts" role="status" aria-live="polite">
    {shown.value.map(t => <div key={t.id} class={`toast ${t.bad ? 'bad' : 'good'}`}><Icon name={t.bad ? 'warning' : 'check'} />{t.text}</div>)}
  </div>
);
