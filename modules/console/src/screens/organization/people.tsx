// The people whose tokens the gateway has seen, and the way to end everything of one.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, query } from '../../api';
import { useLoad } from '../../load';
import type { Offboarding, User } from '../../organization';
import { Link, parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { count, show, words } from '../../text';
import type { Page, Session } from '../../types';
import { Empty, Problem, Screen, Section, Tag, Waiting } from '../../ui/basics';
import { Confirm } from '../../ui/dialog';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { toast } from '../../ui/toast';
import { useMore } from '../../more';

const nameOf = (u: User): string => show(u.email ?? u.name ?? u.subject, 80);

export function People(): JSX.Element {
  const asked = parameters.value.get('search');
  const path = `/api/users${query({ search: asked, limit: 50 })}`;
  const list = useMore<User>(path, u => u.id);
  return (
    <Screen title="People" about="Everybody whose login or token the gateway has seen. Your identity provider has the accounts.">
      <form class="filters search" onSubmit={event => { event.preventDefault(); set({ search: String(new FormData(event.currentTarget).get('search')) }); }}>
        <label><span class="unseen">Search people</span><input type="search" name="search" defaultValue={asked ?? ''} placeholder="Name, e-mail or subject" /></label>
        <button type="submit">Search</button>
      </form>
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!list.rows && !list.error && <Waiting rows={5} />}
      {list.rows?.length === 0 && <Empty icon="people" title={asked ? 'Nobody matches' : 'Nobody was here yet'}>{asked && <button type="button" onClick={() => { set({ search: '' }); }}>Show all</button>}</Empty>}
      {list.rows && list.rows.length > 0 && (
        <Table label="People" rows={list.rows} id={u => u.id} from={path} more={list.more} busy={list.busy} columns={[
          { title: 'Who', kind: 'wide', cell: u => <><Link to={`/organization/people/${u.id}`}><strong>{nameOf(u)}</strong></Link>{u.name && u.email && <><br /><span class="small">{show(u.name, 80)}</span></>}</> },
          { title: 'Roles and groups', cell: u => show([...(u.roles ?? []), ...(u.groups ?? [])].join(', '), 120) || <span class="muted">none known</span> },
          { title: 'Last seen', cell: u => <Time at={u.seen_at} /> },
          { title: 'State', cell: u => (u.revoked_at ? <Tag tone="warning">Ended once</Tag> : <Tag tone="good">Active</Tag>) },
        ]} />
      )}
    </Screen>
  );
}

/** ends says what an offboarding ends, or has ended. */
function ends(o: Offboarding): string {
  const parts: [number, string][] = [[o.sessions, 'login'], [o.api_keys, 'API key'], [o.connections, 'connected account'], [o.streams, 'open stream'], [o.approvals, 'held call'], [o.tasks, 'task']];
  return parts.filter(([n]) => n > 0).map(([n, what]) => count(n, what)).join(', ') || 'nothing but tokens';
}

function Offboard({ user, close, ended }: { user: User; close: () => void; ended: () => Promise<void> }): JSX.Element {
  const preview = useLoad<Offboarding>(`/api/users/${user.id}/offboard?dry_run=true`, 0, path => call<Offboarding>('POST', path));
  return (
    <Confirm title={`End everything of ${nameOf(user)}?`} act="End everything" close={close} run={async () => {
      const done = await call<Offboarding>('POST', `/api/users/${user.id}/offboard`);
      toast(`${nameOf(user)}: ${ends(done)} ended.`);
      await ended();
    }}>
      {preview.error && <Problem error={preview.error} />}
      {!preview.data && !preview.error && <Waiting rows={1} />}
      {preview.data && <p>This ends <strong>{ends(preview.data)}</strong>, at providers too. Tokens that were issued until now are refused everywhere within a second.</p>}
      <p class="warningtext">Remove the person at your identity provider first: a token that it issues later is accepted.</p>
    </Confirm>
  );
}

function Sessions({ user }: { user: User }): JSX.Element {
  const sessions = useLoad<Page<Session>>(`/api/sessions?user_id=${user.id}&limit=50`, 15);
  if (sessions.error) return <Problem error={sessions.error} retry={() => { void sessions.reload(); }} />;
  if (!sessions.data) return <Waiting rows={2} />;
  if (sessions.data.data.length === 0) return <p class="muted">No client is logged in for this user.</p>;
  return (
    <Table label="Logins of clients" rows={sessions.data.data} id={s => s.id} from={`/api/sessions?user_id=${user.id}`} columns={[
      { title: 'Client', kind: 'wide', cell: s => show(s.client_name || s.client_id, 100) },
      { title: 'For', cell: s => <span class="mono small">{show(s.resource, 100)}</span> },
      { title: 'Last used', cell: s => <Time at={s.used_at} /> },
      { title: 'Since', cell: s => <Time at={s.created_at} /> },
    ]} />
  );
}

export function Person({ name }: { name: string }): JSX.Element {
  const user = useLoad<User>(`/api/users/${encodeURIComponent(name)}`);
  const me = useMe();
  const [ending, setEnding] = useState(false);
  const u = user.data;
  if (!u) return <Screen title="Person">{user.error ? <Problem error={user.error} retry={() => { void user.reload(); }} /> : <Waiting />}</Screen>;
  const end = can(me.data, 'administer') ? <button type="button" class="danger" onClick={() => { setEnding(true); }}>End everything</button> : undefined;
  return (
    <>
      <p class="back"><Link to="/organization/people">People</Link></p>
      <Screen title={nameOf(u)} about={u.kind === 'person' ? undefined : words(u.kind)} act={end}>
        <div class="panel">
          <dl>
            {u.name && <><dt>Name</dt><dd>{show(u.name, 120)}</dd></>}
            <dt>Roles</dt><dd>{u.roles === null ? <span class="muted">unknown before their next token</span> : show(u.roles.join(', '), 300) || 'none'}</dd>
            <dt>Groups</dt><dd>{u.groups === null ? <span class="muted">unknown before their next token</span> : show(u.groups.join(', '), 300) || 'none'}</dd>
            <dt>Subject</dt><dd class="mono">{show(u.subject, 200)}</dd>
            <dt>Identity provider</dt><dd class="mono">{show(u.issuer, 200)}</dd>
            <dt>First seen</dt><dd><Time at={u.created_at} /></dd>
            <dt>Last seen</dt><dd><Time at={u.seen_at} /></dd>
            {u.revoked_at && <><dt>Everything ended</dt><dd><Time at={u.revoked_at} /></dd></>}
          </dl>
        </div>
        <Section title="Logins" act={<Link to={`/organization/audit?user=${u.id}`}>Their calls</Link>}><Sessions user={u} /></Section>
        {ending && <Offboard user={u} close={() => { setEnding(false); }} ended={user.reload} />}
      </Screen>
    </>
  );
}
