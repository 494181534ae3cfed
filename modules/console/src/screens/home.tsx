// Home: what needs the reader now.
import type { JSX } from 'preact';
import { useLoad } from '../load';
import { Link } from '../router';
import { nameOf, useHeld, useMe, useServers } from '../session';
import { count, show } from '../text';
import type { ApiKey, Calls, Limits } from '../types';
import { Problem, Screen, Section, Waiting } from '../ui/basics';
import { Icon, type IconName } from '../ui/icons';
import { ago, Time } from '../ui/time';
import { CallTable } from './activity';
import { nearFull } from './limits';
import { State } from './servers';

/** soon is the time before its end from which a key needs its user. */
const soon = 14 * 86_400_000;

interface Need {
  id: string;
  icon: IconName;
  title: JSX.Element | string;
  why: JSX.Element | string;
  act: JSX.Element;
}

export function Home(): JSX.Element {
  const me = useMe().data;
  const held = useHeld(me);
  const servers = useServers();
  const keys = useLoad<ApiKey[]>('/api/llm-gateway/user/api-keys');
  const limits = useLoad<Limits>('/api/limits/mine', 10);
  const recent = useLoad<Calls>('/api/audit/mine?limit=5', 10);

  const needs: Need[] = [
    ...(held.data ?? []).map(a => ({
      id: a.id, icon: 'approvals' as const, title: <>Decide on <span class="mono">{show(a.tool)}</span></>,
      why: <>{show(a.client)} waits for your decision. It ends <Time at={a.expires_at} />.</>, act: <a class="button main" href={`/approvals/${a.id}`}>Look at the call</a>,
    })),
    ...(servers.data ?? []).filter(s => s.connection_status === 'error').map(s => ({
      id: s.id, icon: 'servers' as const, title: `Connect ${show(s.name)} again`, why: 'Your connection does not work any more: calls with your account fail.',
      act: <a class="button" href={`/connect/${s.slug}`}>Connect again</a>,
    })),
    ...(keys.data ?? []).filter(k => !k.revoked_at && !k.disabled && k.expires_at && Date.parse(k.expires_at) - Date.now() < soon && Date.parse(k.expires_at) > Date.now()).map(k => ({
      id: k.id, icon: 'keys' as const, title: `The key ${show(k.name)} expires ${ago(k.expires_at ?? '')}`, why: 'What uses it stops working then. Make another key, and put it there.',
      act: <Link class="button" to="/keys">To your keys</Link>,
    })),
    ...nearFull(limits.data).map(l => ({ id: l.id, icon: 'activity' as const, title: `${show(l.name)} is ${l.percent} % full`, why: l.text, act: <Link class="button" to="/activity">To your activity</Link> })),
  ];
  const known = held.data && servers.data;
  const failed = held.error ?? servers.error;
  const connected = servers.data?.filter(s => s.connection_status === 'connected').length ?? 0;
  return (
    <Screen title={me ? `Hello, ${show(me.user.name ?? nameOf(me).split('@')[0], 40)}` : 'Home'} about="What needs you now, and what happened with your name.">
      <Section title="Needs you">
        {failed && <Problem error={failed} retry={() => { void servers.reload(); }} />}
        {!known && !failed && <Waiting rows={2} />}
        {needs.length > 0 && (
          <ul class="needs">
            {needs.map(n => <li key={n.id}><Icon name={n.icon} /><div><p class="needtitle">{n.title}</p><p class="small">{n.why}</p></div>{n.act}</li>)}
          </ul>
        )}
        {known && needs.length === 0 && <p class="calm"><Icon name="check" />Nothing needs you now.</p>}
      </Section>
      <Section title="Your servers" act={<Link to="/servers">All servers</Link>}>
        {servers.data?.length === 0 && <p class="muted">Your organization has no server yet. An administrator adds the first one.</p>}
        {servers.data && servers.data.length > 0 && (
          <ul class="rows">
            {servers.data.slice(0, 4).map(s => <li key={s.id}><Link to={`/servers/${s.slug}`}>{show(s.name, 60)}</Link><State server={s} /></li>)}
            {servers.data.length > 4 && <li class="small">and {servers.data.length - 4} more; {count(connected, 'server')} can be used now</li>}
          </ul>
        )}
        {servers.data && servers.data.length > 0 && connected === 0 && <p class="small hintbelow"><Link to="/servers">Connect one</Link>, then <Link to="/clients">set up your client</Link>.</p>}
      </Section>
      <Section title="Recent calls" act={<Link to="/activity">All activity</Link>}>
        {recent.error && <Problem error={recent.error} retry={() => { void recent.reload(); }} />}
        {!recent.data && !recent.error && <Waiting />}
        {recent.data && (recent.data.data.length > 0 ? <CallTable label="Your recent calls" calls={recent.data.data} short /> : <p class="muted">No call yet. <Link to="/clients">Set up a client</Link>, and let it call a tool.</p>)}
      </Section>
    </Screen>
  );
}
