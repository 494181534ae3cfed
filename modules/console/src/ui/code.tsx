// Text for machines: to copy, or to look into.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { show } from '../text';
import { Icon } from './icons';
import { toast } from './toast';

/** Copy puts a text into the clipboard. */
export function Copy({ text, label }: { text: string; label: string }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => { setDone(false); }, 2000);
    } catch {
      toast('The browser does not let the page copy. Select the text and copy it yourself.', true);
    }
  };
  return (
    <button type="button" class="quiet" onClick={() => { void copy(); }} aria-label={`Copy ${label}`}>
      <Icon name={done ? 'check' : 'copy'} />{done ? 'Copied' : 'Copy'}
    </button>
  );
}

/** Code shows a text as it is, with a button that copies it. */
export const Code = ({ text, label }: { text: string; label: string }): JSX.Element => (
  <div class="code"><pre tabIndex={0} aria-label={label}>{show(text.replaceAll('\n', '\u0000'), 20_000).replaceAll('⟨U+0000⟩', '\n')}</pre><Copy text={text} label={label} /></div>
);

/** Json shows a value as a tree that can be opened. */
export function Json({ value, name = '' }: { value: unknown; name?: string }): JSX.Element {
  const label = name && <span class="jsonname">{show(name)}: </span>;
  if (typeof value !== 'object' || value === null) {
    const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
    return <div class="json">{label}<span class={`json-${value === null ? 'null' : typeof value}`}>{show(text, 2000)}</span></div>;
  }
  const members = Array.isArray(value) ? value.map((v, i) => [String(i), v] as const) : Object.entries(value);
  const size = Array.isArray(value) ? `[${members.length}]` : `{${members.length}}`;
  if (members.length === 0) return <div class="json">{label}{Array.isArray(value) ? '[]' : '{}'}</div>;
  return (
    <details class="json" open={members.length <= 20}>
      <summary>{label}<span class="muted">{size}</span></summary>
      {members.slice(0, 200).map(([key, member]) => <Json key={key} name={key} value={member} />)}
      {members.length > 200 && <div class="json muted">and {members.length - 200} more</div>}
    </details>
  );
}
