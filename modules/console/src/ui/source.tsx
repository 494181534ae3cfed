// Where the rows of a table come from: the request, to repeat it elsewhere, and all rows as a file.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure } from '../api';
import { count } from '../text';
import { Code } from './code';
import { Dialog } from './dialog';
import { toast } from './toast';

type Row = Record<string, unknown>;

interface Answer {
  data: Row[];
  next_cursor?: string | null;
  pagination?: { next_page: number | null } | null;
}

/** most is the number of requests for one file. */
const most = 200;

/** readAll reads a list of the API in any of its forms to its end. It reports whether there is more than it reads. */
async function readAll(path: string): Promise<{ rows: Row[]; cut: boolean }> {
  const address = new URL(path, location.origin);
  const paged = !address.pathname.startsWith('/api/llm-gateway/');
  if (paged) address.searchParams.set('limit', '100');
  const rows: Row[] = [];
  for (let requests = 0; requests < most; requests++) {
    const answer = await call<Answer | Row[]>('GET', address.pathname + address.search);
    if (Array.isArray(answer)) return { rows: answer, cut: false };
    rows.push(...answer.data);
    if (answer.next_cursor) address.searchParams.set('cursor', answer.next_cursor);
    else if (answer.pagination?.next_page) address.searchParams.set('page', String(answer.pagination.next_page));
    else return { rows, cut: false };
  }
  return { rows, cut: true };
}

/** cell writes a value. A spreadsheet takes a text that begins like a formula for one, which could send the table elsewhere. */
function cell(value: unknown): string {
  const text = value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  const inert = typeof value === 'string' && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

/** table writes rows as CSV (RFC 4180). */
function table(rows: Row[]): string {
  const columns = [...new Set(rows.flatMap(row => Object.keys(row)))];
  return [columns.map(cell), ...rows.map(row => columns.map(c => cell(row[c])))].map(line => `${line.join(',')}\r\n`).join('');
}

/** save has the browser keep a file. */
function save(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => { URL.revokeObjectURL(link.href); }, 60_000);
}

/** quoted writes a text as one word of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Source offers the rows of an address of the API as a file, and the request itself. */
export function Source({ path, label }: { path: string; label: string }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const download = async (): Promise<void> => {
    setBusy(true);
    try {
      const { rows, cut } = await readAll(path);
      save(`${label.toLowerCase().replaceAll(' ', '-')}.csv`, table(rows));
      toast(cut ? `The file has the first ${count(rows.length, 'row')}. Narrow the list down for the rest.` : `The file has ${count(rows.length, 'row')}.`, cut);
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      toast(`${failed.message} ${failed.advice}`, true);
    }
    setBusy(false);
  };
  return (
    <div class="source">
      <button type="button" class="quiet" disabled={busy} onClick={() => { void download(); }}>{busy ? 'Reading…' : 'CSV'}<span class="unseen"> of {label}</span></button>
      <button type="button" class="quiet" onClick={() => { setOpen(true); }}>As API<span class="unseen"> request for {label}</span></button>
      {open && (
        <Dialog title="This list by the API" close={() => { setOpen(false); }}>
          <p>Put an access token of yours into TOKEN. The console's own token does not leave this page.</p>
          <Code label="the request" text={`curl -H "Authorization: Bearer $TOKEN" ${quoted(location.origin + path)}`} />
          <div class="buttons"><a class="button" href="/docs" target="_blank" rel="noopener">All of the API</a><button type="button" class="main" onClick={() => { setOpen(false); }}>Close</button></div>
        </Dialog>
      )}
    </div>
  );
}
