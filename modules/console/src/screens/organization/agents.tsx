// Agents: the applications that act for users, and that policies can name.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, Failure, query } from '../../api';
import { everything, useLoad } from '../../load';
import type { Agent } from '../../organization';
import { parameters, set } from '../../router';
import { can, useMe } from '../../session';
import { show } from '../../text';
import { ByFile, Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Confirm, Dialog } from '../../ui/dialog';
import { Icon } from '../../ui/icons';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { toast } from '../../ui/toast';

const nameOf = (a: Agent): string => show(a.application_directory.name || a.application_directory.external_id, 80);

/** Register makes an agent of an OAuth client. */
function Register({ close, made }: { close: () => void; made: () => Promise<void> }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const register = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    setBusy(true);
    setError(undefined);
    try {
      await call('POST', '/api/agents', {
        application_directory: { name: String(fields.get('name')), external_id: String(fields.get('client')) }, approval_channel: String(fields.get('channel')),
      });
      toast(`${show(String(fields.get('name')), 60)} is registered.`);
      await made();
      close();
    } catch (failed) {
      if (!(failed instanceof Failure)) throw failed;
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Register an agent" close={close}>
      <form onSubmit={event => { event.preventDefault(); void register(event.currentTarget); }}>
        <label for="agentname">Name</label>
        <input id="agentname" name="name" required maxLength={255} autocomplete="off" />
        <label for="agentclient">Client id</label>
        <input id="agentclient" name="client" required maxLength={255} autocomplete="off" aria-describedby="agentclienthint" />
        <p id="agentclienthint" class="small hint">The OAuth client that its tokens are issued to.</p>
        <label for="agentchannel">Held calls are decided</label>
        <select id="agentchannel" name="channel"><option value="out_of_band">on the gateway's page</option><option value="in_band">in the client, or on the page</option></select>
        {error && <Problem error={error} />}
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class="main" disabled={busy}>Register</button></div>
      </form>
    </Dialog>
  );
}

export function Agents(): JSX.Element {
  const agents = useLoad<Agent[]>('/api/agents', 0, path => everything<Agent>(path));
  const me = useMe();
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<Agent>();
  const asked = parameters.value.get('search') ?? '';
  const rows = agents.data?.filter(a => `${a.application_directory.name} ${a.application_directory.external_id}`.toLowerCase().includes(asked.toLowerCase()));
  const operates = can(me.data, 'operate_servers');
  const add = operates ? <button type="button" class="main" onClick={() => { setMaking(true); }}><Icon name="plus" />Register an agent</button> : undefined;
  return (
    <Screen title="Agents" about="The applications that act for your users. A policy can name them; other clients get what policies for all agents allow." act={add}>
      {agents.error && <Problem error={agents.error} retry={() => { void agents.reload(); }} />}
      {!agents.data && !agents.error && <Waiting rows={4} />}
      {agents.data?.length === 0 && <Empty icon="agents" title="No agent is registered"><p>Register one to write a policy that is for it alone.</p>{add}</Empty>}
      {agents.data && agents.data.length > 0 && (
        <form class="filters search" onSubmit={event => { event.preventDefault(); }}>
          <label><span class="unseen">Search agents</span><input type="search" value={asked} placeholder="Search by name or client id" onInput={event => { set({ search: event.currentTarget.value }); }} /></label>
        </form>
      )}
      {agents.data && agents.data.length > 0 && rows?.length === 0 && <Empty icon="search" title="No agent matches"><button type="button" onClick={() => { set({ search: '' }); }}>Show all</button></Empty>}
      {rows && rows.length > 0 && (
        <Table label="Agents" rows={rows} id={a => a.id} from={`/api/agents${query({ search: asked })}`} columns={[
          { title: 'Agent', kind: 'wide', cell: a => <><strong>{nameOf(a)}</strong><ByFile of={a} /><br /><span class="small mono">{show(a.application_directory.external_id, 120)}</span></> },
          { title: 'Kind', cell: a => <Tag tone="quiet">{a.agent_type === 'external' ? 'Registered itself' : 'Internal'}</Tag> },
          { title: 'Held calls', cell: a => (a.approval_channel === 'in_band' ? 'in the client' : 'on the page') },
          { title: 'Since', cell: a => <Time at={a.created_at} /> },
          { title: 'Acts', kind: 'end', cell: a => operates && <button type="button" class="quiet danger" onClick={() => { setEnding(a); }}>Remove<span class="unseen"> {nameOf(a)}</span></button> },
        ]} />
      )}
      {making && <Register close={() => { setMaking(false); }} made={agents.reload} />}
      {ending && (
        <Confirm title={`Remove ${nameOf(ending)}?`} act="Remove the agent" close={() => { setEnding(undefined); }} run={async () => {
          await call('DELETE', `/api/agents/${ending.id}`);
          toast(`${nameOf(ending)} is removed.`);
          await agents.reload();
        }}>
          <p>It disappears from the policies that name it. Policies that name no other agent are archived. Its own credentials end. The client itself may go on under policies for all agents.</p>
        </Confirm>
      )}
    </Screen>
  );
}
