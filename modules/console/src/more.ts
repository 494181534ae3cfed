// Lists that are read by cursor: the first page is kept up to date, more pages are added on request.
import { useEffect, useState } from 'preact/hooks';
import { call, Failure } from './api';
import { useLoad } from './load';
import type { Keyed } from './organization';

export interface More<T, P> {
  /** first is the first page, which may say more than its rows. */
  first: P | undefined;
  rows: T[] | undefined;
  error: Failure | undefined;
  busy: boolean;
  more: (() => void) | undefined;
  reload: () => Promise<void>;
}

/** useMore reads a list at a path, which has its filters. Rows that two pages have, because the list moved meanwhile, show once. */
export function useMore<T, P extends Keyed<T> = Keyed<T>>(path: string, id: (row: T) => string, seconds = 0): More<T, P> {
  const first = useLoad<P>(path, seconds);
  const [later, setLater] = useState<{ rows: T[]; cursor: string | null }>();
  const [error, setError] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  useEffect(() => { setLater(undefined); setError(undefined); }, [path]);
  const cursor = later ? later.cursor : first.data?.next_cursor ?? null;
  const next = async (): Promise<void> => {
    setBusy(true);
    try {
      const page = await call<Keyed<T>>('GET', `${path.replace(/[?&]cursor=$/, '')}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor ?? '')}`);
      setLater({ rows: [...(later?.rows ?? []), ...page.data], cursor: page.next_cursor });
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  const seen = new Set<string>();
  const rows = first.data && [...first.data.data, ...(later?.rows ?? [])].filter(row => !seen.has(id(row)) && seen.add(id(row)));
  return {
    first: first.data, rows, error: first.error ?? error, busy, more: cursor ? () => { void next(); } : undefined,
    reload: async () => { setLater(undefined); setError(undefined); await first.reload(); },
  };
}
