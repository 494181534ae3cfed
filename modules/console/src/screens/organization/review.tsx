// Tools to review: what changed at servers since somebody accepted it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { query } from '../../api';
import type { Tool } from '../../organization';
import { parameters, set } from '../../router';
import { show } from '../../text';
import { Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Table } from '../../ui/table';
import { Time } from '../../ui/time';
import { useMore } from '../../more';
import { Change } from './server';

interface ServerTool extends Tool {
  mcp_server_id: string;
  server: string;
}

const states: [string, string][] = [['changed', 'changed'], ['withheld', 'withheld until accepted'], ['new', 'never accepted'], ['', 'all']];

export function Review(): JSX.Element {
  const state = parameters.value.get('state') ?? 'changed';
  const path = `/api/tools${query({ state: state === 'all' ? '' : state, limit: 50 })}`;
  const list = useMore<ServerTool>(path, t => `${t.mcp_server_id} ${t.name}`, 15);
  const [looking, setLooking] = useState<ServerTool>();
  return (
    <Screen title="Tools to review" about="A server can change what a tool says of itself, and models believe it. Look at the change before you accept it.">
      <form class="filters" onSubmit={event => { event.preventDefault(); }}>
        <label><span>Tools that are</span><select value={state === 'all' ? '' : state} onChange={event => { set({ state: event.currentTarget.value || 'all' }); }}>{states.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select></label>
      </form>
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!list.rows && !list.error && <Waiting />}
      {list.rows?.length === 0 && <Empty icon="check" title={state === 'changed' || state === 'withheld' ? 'No tool waits for a review' : 'There is no such tool'} />}
      {list.rows && list.rows.length > 0 && (
        <Table label="Tools" rows={list.rows} id={t => `${t.mcp_server_id} ${t.name}`} from={path} more={list.more} busy={list.busy} columns={[
          { title: 'Tool', kind: 'wide', cell: t => <><span class="mono">{show(t.name)}</span><br /><span class="small">{show(t.server, 80)}</span></> },
          { title: 'State', cell: t => <>{t.withheld ? <Tag tone="bad">Withheld</Tag> : t.changed ? <Tag tone="warning">Changed</Tag> : <Tag tone="good">As first seen</Tag>}{t.suspicious.length > 0 && <> <Tag tone="bad">Suspicious</Tag></>}</> },
          { title: 'Changed', cell: t => <Time at={t.changed_at} /> },
          { title: 'Acts', kind: 'end', cell: t => t.changed && <button type="button" class="quiet" onClick={() => { setLooking(t); }}>Review<span class="unseen"> {show(t.name)}</span></button> },
        ]} />
      )}
      {looking && <Change tool={looking} server={looking.mcp_server_id} close={() => { setLooking(undefined); }} accepted={list.reload} />}
    </Screen>
  );
}
