// What all screens know: who the reader is, and which of their calls wait.
import { call } from './api';
import { everything, useFollow, useLoad, type Loaded } from './load';
import type { Approval, Entry, Me, Page, Right, Server } from './types';

export const useMe = (): Loaded<Me> => useLoad<Me>('/api/me');

/** useHeld follows the reader's own held calls. */
export function useHeld(me: Me | undefined): Loaded<Approval[]> {
  const held = useFollow<Page<Approval>>(me ? `/api/approvals?status=pending&limit=100&user_id=${me.user.id}` : '');
  return { ...held, data: held.data?.data };
}

/** useServers gives all servers of the organization, with the reader's connection to each. */
export const useServers = (seconds = 0): Loaded<Server[]> & { reload: () => Promise<void> } =>
  useLoad<Server[]>('/api/servers', seconds, path => everything<Server>(path));

/** useEntries gives the entries of the directory by their ids. */
export function useEntries(): Map<string, Entry> {
  const entries = useLoad<Entry[]>('/api/server-directory', 0, path => everything<Entry>(path));
  return new Map(entries.data?.map(e => [e.id, e]));
}

/** withoutAccount are the kinds of providers at which no user connects an account. */
const withoutAccount = ['none', 'token_exchange', 'client_credentials', 'workload_identity'];

/** hasAccount reports whether users connect accounts of their own at a server of an entry. */
export const hasAccount = (entry: Entry | undefined): boolean => entry !== undefined && entry.requires_auth && !withoutAccount.includes(entry.provider);

/** can reports whether the reader has a right. */
export const can = (me: Me | undefined, right: Right): boolean => me?.may.includes(right) ?? false;

/** sees reports whether the reader has one of some rights. None means that nothing is needed. */
export const sees = (me: Me | undefined, rights: Right[] | undefined): boolean => rights?.some(r => can(me, r)) ?? true;

/** staff are all who look after an organization. */
export const staff: Right[] = ['read_everything', 'edit_policies', 'operate_servers'];

/** disconnect ends the reader's connection to a server. */
export const disconnect = (server: Server): Promise<void> => call<void>('DELETE', `/api/servers/${server.id}/connection`);

/** nameOf returns the reader's name. */
export const nameOf = (me: Me): string => me.user.email ?? me.user.name ?? me.user.subject;
