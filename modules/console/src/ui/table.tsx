// A list of objects. On a narrow screen each row becomes a card.
import type { ComponentChildren, JSX } from 'preact';
import { Source } from './source';

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** wide columns take the room that is left; end columns hold buttons. */
  kind?: 'wide' | 'end';
}

/** Table shows rows, with a button for more of them where there are more. from is the address of the API that has them all. */
export function Table<T>({ label, columns, rows, id, from, more, busy }: {
  label: string; columns: Column<T>[]; rows: T[]; id: (row: T) => string; from?: string | undefined; more?: (() => void) | undefined; busy?: boolean;
}): JSX.Element {
  return (
    <div class="tablebox">
      <table>
        <caption class="unseen">{label}</caption>
        <thead><tr>{columns.map(c => <th key={c.title} scope="col" class={c.kind}>{c.kind === 'end' ? <span class="unseen">{c.title}</span> : c.title}</th>)}</tr></thead>
        <tbody>
          {rows.map(row => (
            <tr key={id(row)}>{columns.map(c => <td key={c.title} data-title={c.kind === 'end' ? '' : c.title} class={c.kind}>{c.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {more && <div class="more"><button type="button" disabled={busy} onClick={more}>{busy ? 'Loading…' : 'Show more'}</button></div>}
      {from && <Source path={from} label={label} />}
    </div>
  );
}
