// What is missing before the first call can succeed.
import type { JSX } from 'preact';
import { query } from '../../api';
import { useLoad } from '../../load';
import type { Keyed } from '../../organization';
import { Link } from '../../router';
import { useServers } from '../../session';
import { Section, Tag } from '../../ui/basics';

/** FirstSteps is shown to administrators until a call was allowed. */
export function FirstSteps(): JSX.Element | null {
  const servers = useServers(10);
  const policies = useLoad<{ active: number }>('/api/v2/policies/summary', 10);
  const calls = useLoad<Keyed<unknown>>(`/api/audit${query({ kind: 'call', decision: 'allow', limit: 1 })}&cursor=`, 10);
  if (!servers.data || !policies.data || !calls.data || calls.data.data.length > 0) return null;
  const steps: { done: boolean; text: string; to: string; act: string }[] = [
    { done: servers.data.length > 0, text: 'Put a server behind the gateway, which tries it at once.', to: '/organization/servers/new', act: 'Add a server' },
    { done: policies.data.active > 0, text: 'Say who may call which of its tools. Until then, every call is refused.', to: '/organization/policies/new', act: 'Write a policy' },
    { done: false, text: 'Set up a client, and let it call a tool.', to: '/clients', act: 'Set up a client' },
  ];
  return (
    <Section title="First steps" act={<Link to="/organization/refused">A client cannot log in?</Link>}>
      <ol class="rows">
        {steps.map(s => <li key={s.to}><span>{s.done ? <Tag tone="good">Done</Tag> : <Tag tone="quiet">To do</Tag>} {s.text}</span>{!s.done && <Link to={s.to} class="button quiet">{s.act}</Link>}</li>)}
      </ol>
    </Section>
  );
}
