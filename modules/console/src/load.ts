// What screens show of the API: loaded when they open, kept for when they open again, renewed while they are seen.
import { signal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { call, Failure, follow, loggedOut } from './api';
import type { Page } from './types';

/** Loaded is an answer of the API: what came last, and why it came no more. */
export interface Loaded<T> {
  data: T | undefined;
  error: Failure | undefined;
  busy: boolean;
}

const kept = new Map<string, Signal<Loaded<unknown>>>();
const maxKept = 100;

function entry<T>(path: string): Signal<Loaded<T>> {
  let found = kept.get(path);
  if (!found) {
    if (kept.size >= maxKept) [...kept.keys()].filter(known => !streams.has(known)).forEach(known => kept.delete(known));
    found = signal<Loaded<unknown>>({ data: undefined, error: undefined, busy: false });
    kept.set(path, found);
  }
  return found as Signal<Loaded<T>>;
}

async function fetchInto<T>(path: string, read: (path: string) => Promise<T>): Promise<void> {
  const at = entry<T>(path);
  if (at.value.busy || loggedOut.value) return;
  at.value = { ...at.value, busy: true };
  try {
    at.value = { data: await read(path), error: undefined, busy: false };
  } catch (error) {
    at.value = { ...at.value, error: failure(error, path), busy: false };
  }
}

const get = <T>(path: string): Promise<T> => call<T>('GET', path);

/** useLoad gives the answer of an address of the API, and asks anew each so many seconds while the page is seen. */
export function useLoad<T>(path: string, seconds = 0, read: (path: string) => Promise<T> = get): Loaded<T> & { reload: () => Promise<void> } {
  const at = useMemo(() => entry<T>(path), [path]);
  useEffect(() => {
    void fetchInto(path, read);
    if (!seconds) return;
    const renew = (): void => {
      if (!document.hidden) void fetchInto(path, read);
    };
    const timer = setInterval(renew, seconds * 1000);
    document.addEventListener('visibilitychange', renew);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', renew);
    };
  }, [path, seconds]);
  return { ...at.value, reload: () => fetchInto(path, read) };
}

const failure = (error: unknown, path: string): Failure => (error instanceof Failure ? error : new Failure(0, String(error), path, ''));

const streams = new Map<string, { readers: number; end: () => void }>();

/** stream follows an address while the page is seen, and begins anew when the stream ends, less often when it fails. */
function stream<T>(path: string, over: (data: T) => boolean): () => void {
  const at = entry<T>(path);
  let abort: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pause = 1;
  let done = false;
  const begin = async (): Promise<void> => {
    clearTimeout(timer);
    if (abort || done || document.hidden || loggedOut.value) return;
    const own = abort = new AbortController();
    try {
      await follow<T>(path, data => {
        pause = 1;
        done = over(data);
        at.value = { data, error: undefined, busy: false };
      }, own.signal);
    } catch (error) {
      pause = Math.min(pause * 2, 30);
      if (!own.signal.aborted) at.value = { ...at.value, error: failure(error, path) };
    }
    if (abort !== own) return; // left
    abort = undefined;
    timer = setTimeout(() => { void begin(); }, pause * 1000);
  };
  const leave = (): void => {
    clearTimeout(timer);
    const own = abort;
    abort = undefined;
    own?.abort();
  };
  const turn = (): void => {
    if (document.hidden) leave();
    else void begin();
  };
  document.addEventListener('visibilitychange', turn);
  void begin();
  return () => {
    document.removeEventListener('visibilitychange', turn);
    done = true;
    leave();
  };
}

/** useFollow gives what an event stream of the API said last; "" is no address. All who follow an address share one stream. */
export function useFollow<T>(path: string, over: (data: T) => boolean = () => false): Loaded<T> {
  const at = useMemo(() => entry<T>(path), [path]);
  useEffect(() => {
    if (!path) return;
    const known = streams.get(path) ?? { readers: 0, end: stream(path, over) };
    known.readers++;
    streams.set(path, known);
    return () => {
      if (--known.readers > 0) return;
      streams.delete(path);
      known.end();
    };
  }, [path]);
  return at.value;
}

/** goesOn reports whether a job is not over. */
export const goesOn = (job: { state: string }): boolean => job.state === 'queued' || job.state === 'running';

/** most is the number of pages that are read of a list at once. */
const most = 10;

/** everything reads all pages of a list that stays short. */
export async function everything<T>(path: string): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; page <= most; page++) {
    const read = await get<Page<T>>(`${path}${path.includes('?') ? '&' : '?'}limit=100&page=${page}`);
    all.push(...read.data);
    if (read.pagination.next_page === null) break;
  }
  return all;
}
