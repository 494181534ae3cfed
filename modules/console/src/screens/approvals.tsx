// My approvals: the reader's held calls. The decision is made on the gateway's own page, which runs no script.
import type { JSX } from 'preact';
import { everything, useFollow, useLoad } from '../load';
import { parameters } from '../router';
import { useHeld, useMe, useServers } from '../session';
import { show, words } from '../text';
import type { Approval, Page } from '../types';
import { Empty, Problem, Screen, Tag, Waiting, type Tone } from '../ui/basics';
import { Json } from '../ui/code';
import { Table } from '../ui/table';
import { Tabs } from '../ui/tabs';
import { Time } from '../ui/time';

const tones: Record<Approval['status'], Tone> = { pending: 'warning', approved: 'good', denied: 'bad', expired: 'quiet', used: 'good' };

function Waits(): JSX.Element {
  const held = useHeld(useMe().data);
  const servers = useServers();
  if (held.error && !held.data) return <Problem error={held.error} />;
  if (!held.data) return <Waiting />;
  if (held.data.length === 0) {
    return <Empty icon="approvals" title="No call waits for you"><p>When a policy asks for your agreement, the call waits here until you have decided.</p></Empty>;
  }
  return (
    <ul class="cards one">
      {held.data.map(a => (
        <li key={a.id} class="card">
          <div class="cardhead"><h2 class="mono">{show(a.tool, 80)}</h2><Tag tone="warning">Waits for you</Tag></div>
          <p class="small">{show(a.client, 80)} asks at {show(servers.data?.find(s => s.id === a.mcp_server_id)?.name ?? 'a server', 80)} · asked <Time at={a.created_at} /> · ends <Time at={a.expires_at} /></p>
          <div class="panel"><Json value={a.arguments} /></div>
          <div class="buttons start"><a class="button main" href={`/approvals/${a.id}`}>Look and decide<span class="unseen"> on {show(a.tool, 80)}</span></a></div>
        </li>
      ))}
    </ul>
  );
}

/** Others lists the held calls of others on which the reader may decide. */
function Others(): JSX.Element {
  const waiting = useFollow<Page<Approval>>('/api/approvals?waiting_for=me&limit=100');
  const servers = useServers();
  if (waiting.error && !waiting.data) return <Problem error={waiting.error} />;
  if (!waiting.data) return <Waiting />;
  if (waiting.data.data.length === 0) return <Empty icon="approvals" title="No call of others waits for you"><p>A policy can name you, or a group of yours, to decide on the calls of others.</p></Empty>;
  return (
    <Table label="Calls of others" rows={waiting.data.data} id={a => a.id} columns={[
      { title: 'Tool', kind: 'wide', cell: a => <><span class="mono">{show(a.tool, 80)}</span><br /><span class="small">{show(servers.data?.find(s => s.id === a.mcp_server_id)?.name ?? '', 80)}</span></> },
      { title: 'Asked by', cell: a => show(a.client, 60) },
      { title: 'Asked', cell: a => <Time at={a.created_at} /> },
      { title: 'Ends', cell: a => <Time at={a.expires_at} /> },
      { title: 'Open', kind: 'end', cell: a => <a class="button quiet" href={`/approvals/${a.id}`}>Look and decide<span class="unseen"> on {show(a.tool, 80)}</span></a> },
    ]} />
  );
}

function Decided(): JSX.Element {
  const me = useMe().data;
  const all = useLoad<Approval[]>('/api/approvals?status=approved,denied,expired,used', 0, path => everything<Approval>(path));
  if (all.error) return <Problem error={all.error} retry={() => { void all.reload(); }} />;
  if (!all.data) return <Waiting />;
  const mine = all.data.filter(a => a.user_id === me?.user.id);
  if (mine.length === 0) return <Empty icon="approvals" title="You have decided on no call yet" />;
  return (
    <Table label="Decided calls" rows={mine} id={a => a.id} columns={[
      { title: 'Tool', kind: 'wide', cell: a => <span class="mono">{show(a.tool, 80)}</span> },
      { title: 'Asked by', cell: a => show(a.client, 60) },
      { title: 'State', cell: a => <Tag tone={tones[a.status]}>{a.status === 'used' ? 'approved, has run' : words(a.status)}</Tag> },
      { title: 'Asked', cell: a => <Time at={a.created_at} /> },
      { title: 'Open', kind: 'end', cell: a => <a class="button quiet" href={`/approvals/${a.id}`}>Open<span class="unseen"> {show(a.tool, 80)}</span></a> },
    ]} />
  );
}

export function Approvals(): JSX.Element {
  const open = parameters.value.get('tab') ?? 'waiting';
  return (
    <Screen title="My approvals" about="Calls that wait until you agree to exactly that call. You decide on a page of its own, which runs no script.">
      <Tabs label="Approvals" open={open} tabs={[{ id: 'waiting', title: 'Waiting', to: '/approvals' }, { id: 'others', title: 'Of others', to: '/approvals?tab=others' }, { id: 'decided', title: 'Decided', to: '/approvals?tab=decided' }]} />
      {open === 'decided' ? <Decided /> : open === 'others' ? <Others /> : <Waits />}
    </Screen>
  );
}
