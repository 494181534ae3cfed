// The models of the organization: who serves them, the names that clients use, and the names that choose by the request.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useLoad } from '../../load';
import { Link, parameters } from '../../router';
import { can, useMe } from '../../session';
import { show } from '../../text';
import { ByFile, Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Icon } from '../../ui/icons';
import { Delete, Make, type Ending } from '../../ui/object';
import { Table } from '../../ui/table';
import { Tabs } from '../../ui/tabs';
import { SmartForm } from './smartform';

const admin = '/api/llm-gateway/admin';

export interface SmartModel {
  managed_by_file?: boolean;
  id: string;
  model_alias: string;
  description: string;
  enabled: boolean;
  determiner_model_alias: string | null;
  determiner_input_max_chars: number;
  slots: { model_alias: string; label: string }[];
  context_breakpoints: number[];
  default_slot_on_failure: number;
  sticky: boolean;
}

interface Provider {
  managed_by_file?: boolean;
  id: string;
  name: string;
  kind: string;
  source: string;
  base_url: string | null;
  has_api_key: boolean;
}

interface Target {
  provider_id: string;
  model: string;
  weight: number;
}

interface Mapping {
  managed_by_file?: boolean;
  id: string;
  model_alias: string;
  description: string;
  targets: Target[];
  fallbacks: string[];
}

const text = (fields: FormData, name: string): string => String(fields.get(name) ?? '').trim();

/** lines reads a list of a form, with an entry on each line. */
const lines = (fields: FormData, name: string): string[] => text(fields, name).split('\n').map(line => line.trim()).filter(Boolean);

const useProviders = (): ReturnType<typeof useLoad<Provider[]>> => useLoad<Provider[]>(`${admin}/providers`);

/** List is a tab: its rows, or what to do while there are none. */
function List<T>({ list, icon, empty, hint, add, children }: {
  list: ReturnType<typeof useLoad<T[]>>; icon: 'servers' | 'agents'; empty: string; hint: string; add: JSX.Element | undefined; children: (rows: T[]) => JSX.Element;
}): JSX.Element {
  if (list.error) return <Problem error={list.error} retry={() => { void list.reload(); }} />;
  if (!list.data) return <Waiting />;
  if (list.data.length === 0) return <Empty icon={icon} title={empty}><p>{hint}</p>{add}</Empty>;
  return <>{add && <div class="buttons start spaced">{add}</div>}{children(list.data)}</>;
}

const Add = ({ act, open }: { act: string; open: () => void }): JSX.Element => <button type="button" class="main" onClick={open}><Icon name="plus" />{act}</button>;

const Acts = ({ name, edit, end }: { name: string; edit: () => void; end: () => void }): JSX.Element => (
  <span class="rowacts"><button type="button" class="quiet" onClick={edit}>Change<span class="unseen"> {show(name, 60)}</span></button><End name={name} end={end} /></span>
);

const End = ({ name, end }: { name: string; end: () => void }): JSX.Element => <button type="button" class="quiet danger" onClick={end}>Delete<span class="unseen"> {show(name, 60)}</span></button>;

/** Kinds offers the protocols that every gateway has, and the one that a provider has already. */
const Kinds = ({ of }: { of: string | undefined }): JSX.Element => (
  <select id="kind" name="kind">
    <option value="openai" selected={of === 'openai'}>OpenAI</option><option value="anthropic" selected={of === 'anthropic'}>Anthropic</option>
    {of && of !== 'openai' && of !== 'anthropic' && <option value={of} selected>{show(of)}</option>}
  </select>
);

/** usersOf names the aliases that go to a provider. */
const usersOf = (mappings: Mapping[] | undefined, provider: string): string[] =>
  (mappings ?? []).filter(m => m.targets.some(t => t.provider_id === provider)).map(m => show(m.model_alias, 60));

function Providers({ administers }: { administers: boolean }): JSX.Element {
  const list = useProviders();
  const mappings = useLoad<Mapping[]>(`${admin}/model-mappings`);
  const [making, setMaking] = useState(false);
  const [changing, setChanging] = useState<Provider>();
  const [ending, setEnding] = useState<Ending>();
  const add = administers ? <Add act="New provider" open={() => { setMaking(true); }} /> : undefined;
  return (
    <>
      <List list={list} icon="servers" empty="Nobody serves models yet" hint="A provider is an account at OpenAI, Anthropic or a server of yours that speaks like them." add={add}>
        {rows => (
          <Table label="Providers" rows={rows} id={p => p.id} from={`${admin}/providers`} columns={[
            { title: 'Provider', kind: 'wide', cell: p => <><strong>{show(p.name, 80)}</strong><ByFile of={p} />{p.base_url && <><br /><span class="small mono">{show(p.base_url, 120)}</span></>}</> },
            { title: 'Speaks like', cell: p => show(p.kind) },
            { title: 'Key', cell: p => (p.has_api_key ? <Tag tone="good">Has one</Tag> : <Tag tone="quiet">None</Tag>) },
            { title: 'Made', cell: p => (p.source === 'config' ? 'in the configuration' : 'here') },
            { title: 'Acts', kind: 'end', cell: p => administers && p.source !== 'config' && <Acts name={p.name} edit={() => { setChanging(p); }} end={() => { setEnding(p); }} /> },
          ]} />
        )}
      </List>
      {(making || changing) && (
        <Make title={changing ? `Change ${show(changing.name, 60)}` : 'New provider'} act={changing ? 'Keep the changes' : 'Make the provider'} was={changing} path={`${admin}/providers`}
          close={() => { setMaking(false); setChanging(undefined); }} made={list.reload}
          body={f => ({
            name: text(f, 'name'), kind: text(f, 'kind'), base_url: text(f, 'url') || null,
            ...(text(f, 'key') ? { api_key: text(f, 'key') } : !changing || f.get('forget') ? { api_key: null } : {}),
          })}>
          <>
            <label for="kind">Speaks like</label><Kinds of={changing?.kind} />
            <label for="url">Address</label><input id="url" name="url" type="url" autocomplete="off" placeholder="empty: its own" defaultValue={changing?.base_url ?? ''} />
            <label for="key">API key</label><input id="key" name="key" type="password" autocomplete="off" aria-describedby="keyhint" placeholder={changing?.has_api_key ? 'empty: the one that it has' : ''} />
            <p id="keyhint" class="small hint">It is kept encrypted, and never shown again.{changing?.has_api_key && ' With another address or kind it has to be given again: a key is not sent to another place.'}</p>
            {changing?.has_api_key && <label class="check"><input type="checkbox" name="forget" />Forget the key that it has</label>}
            {changing && <p class="small hint">{usersOf(mappings.data, changing.id).length > 0 ? `Calls by ${usersOf(mappings.data, changing.id).join(', ')} go there from then on.` : 'No alias uses it.'}</p>}
          </>
        </Make>
      )}
      {ending && <Delete what={ending} path={`${admin}/providers`} effect={`Its key is forgotten. ${usersOf(mappings.data, ending.id).length > 0 ? `It stays as long as an alias uses it: ${usersOf(mappings.data, ending.id).join(', ')}.` : 'No alias uses it.'}`} close={() => { setEnding(undefined); }} done={list.reload} />}
    </>
  );
}

/** readTargets reads the rows of Targets. What a target has that the form does not show stays with it. */
function readTargets(fields: FormData, were: Target[]): Target[] {
  const column = (name: string): string[] => fields.getAll(name).map(value => String(value).trim());
  const [providers, models, weights, rows] = [column('provider'), column('model'), column('weight'), column('row')];
  return models.map((model, i) => ({ ...were[Number(rows[i])], provider_id: providers[i] ?? '', model, weight: Number(weights[i] ?? 0) }));
}

/** Targets asks for the models behind an alias. */
function Targets({ of, providers }: { of: Target[]; providers: Provider[] }): JSX.Element {
  const [rows, setRows] = useState(() => (of.length > 0 ? of.map((_, i) => i) : [0]));
  return (
    <fieldset class="targets">
      <legend>Models that answer</legend>
      {rows.map((row, i) => (
        <div key={row} class="target">
          <input type="hidden" name="row" value={row} />
          <label>Provider<select name="provider" required>{providers.map(p => <option key={p.id} value={p.id} selected={p.id === of[row]?.provider_id}>{show(p.name, 60)}</option>)}</select></label>
          <label>Model<input name="model" required maxLength={255} autocomplete="off" placeholder="as the provider names it" defaultValue={of[row]?.model} /></label>
          <label>Weight<input name="weight" type="number" min="0" max="1000000" required defaultValue={String(of[row]?.weight ?? 0)} /></label>
          {rows.length > 1 && <button type="button" class="quiet danger" onClick={() => { setRows(rows.filter(r => r !== row)); }}>Remove<span class="unseen"> model {i + 1}</span></button>}
        </div>
      ))}
      <div class="buttons start"><button type="button" class="quiet" onClick={() => { setRows([...rows, Math.max(...rows, of.length - 1) + 1]); }}><Icon name="plus" />One more model</button></div>
      {rows.length > 1 && <p class="small hint">A call begins with one of them by weight, and tries the others when it fails. All weights 0: the first one first.</p>}
    </fieldset>
  );
}

function Aliases({ administers }: { administers: boolean }): JSX.Element {
  const list = useLoad<Mapping[]>(`${admin}/model-mappings`);
  const providers = useProviders();
  const [making, setMaking] = useState(false);
  const [changing, setChanging] = useState<Mapping>();
  const behind = (alias: string): string[] => (list.data ?? []).filter(m => m.fallbacks.includes(alias)).map(m => show(m.model_alias, 60));
  const [ending, setEnding] = useState<Ending>();
  const add = administers ? <Add act="New alias" open={() => { setMaking(true); }} /> : undefined;
  const providerOf = (id: string): string => show(providers.data?.find(p => p.id === id)?.name ?? id, 60);
  return (
    <>
      <List list={list} icon="agents" empty="The organization has no alias of its own" hint="An alias is the name that clients use for a model. Those of the configuration work too, and are not in this list." add={add}>
        {rows => (
          <Table label="Aliases" rows={rows} id={m => m.id} from={`${admin}/model-mappings`} columns={[
            { title: 'Alias', kind: 'wide', cell: m => <><strong class="mono">{show(m.model_alias, 80)}</strong><ByFile of={m} />{m.description && <><br /><span class="small">{show(m.description, 160)}</span></>}</> },
            { title: 'Goes to', cell: m => m.targets.map(t => <div key={`${t.provider_id} ${t.model}`}><span class="mono">{show(t.model, 80)}</span> <span class="small">at {providerOf(t.provider_id)}{m.targets.length > 1 && `, weight ${t.weight}`}</span></div>) },
            { title: 'When it fails', cell: m => show(m.fallbacks.join(', '), 120) || <span class="muted">an error</span> },
            { title: 'Acts', kind: 'end', cell: m => administers && <Acts name={m.model_alias} edit={() => { setChanging(m); }} end={() => { setEnding({ id: m.id, name: m.model_alias }); }} /> },
          ]} />
        )}
      </List>
      {(making || changing) && (
        <Make title={changing ? `Change ${show(changing.model_alias, 60)}` : 'New alias'} named="Alias" act={changing ? 'Keep the changes' : 'Make the alias'} path={`${admin}/model-mappings`}
          was={changing && { id: changing.id, name: changing.model_alias }} close={() => { setMaking(false); setChanging(undefined); }} made={list.reload}
          body={f => ({ model_alias: text(f, 'name'), description: text(f, 'about'), targets: readTargets(f, changing?.targets ?? []), fallbacks: lines(f, 'fallbacks') })}>
          <>
            <Targets of={changing?.targets ?? []} providers={providers.data ?? []} />
            <label for="about">What it is for</label><input id="about" name="about" maxLength={1000} autocomplete="off" defaultValue={changing?.description} />
            <label for="fallbacks">Aliases to try when it fails</label><textarea id="fallbacks" name="fallbacks" rows={2} placeholder="one on each line" defaultValue={changing?.fallbacks.join('\n')} />
            {changing && <p class="small hint">Calls that come from then on go by the changes. With another name, calls with the former one are refused.</p>}
          </>
        </Make>
      )}
      {ending && <Delete what={ending} path={`${admin}/model-mappings`} effect={`Calls with this name are refused from then on.${behind(ending.name).length > 0 ? ` It stays as long as another alias falls back to it: ${behind(ending.name).join(', ')}.` : ''}`} close={() => { setEnding(undefined); }} done={list.reload} />}
    </>
  );
}

function SmartModels({ administers }: { administers: boolean }): JSX.Element {
  const list = useLoad<SmartModel[]>(`${admin}/smart-models`);
  const [making, setMaking] = useState(false);
  const [changing, setChanging] = useState<SmartModel>();
  const [ending, setEnding] = useState<Ending>();
  const add = administers ? <Add act="New smart model" open={() => { setMaking(true); }} /> : undefined;
  return (
    <>
      <List list={list} icon="agents" empty="There is no smart model" hint="A smart model sends each request to one of several aliases: easy ones to a small model, hard ones to a large one." add={add}>
        {rows => (
          <Table label="Smart models" rows={rows} id={m => m.id} from={`${admin}/smart-models`} columns={[
            { title: 'Alias', kind: 'wide', cell: m => <><Link to={`/organization/models/${m.id}`}><strong class="mono">{show(m.model_alias, 80)}</strong></Link><ByFile of={m} />{m.description && <><br /><span class="small">{show(m.description, 160)}</span></>}</> },
            { title: 'Chooses from', cell: m => <span class="mono small">{show(m.slots.map(s => s.model_alias).join(', '), 160)}</span> },
            { title: 'Asks', cell: m => (m.determiner_model_alias ? <span class="mono">{show(m.determiner_model_alias, 60)}</span> : <span class="muted">nobody</span>) },
            { title: 'State', cell: m => (m.enabled ? <Tag tone="good">In use</Tag> : <Tag tone="quiet">Switched off</Tag>) },
            { title: 'Acts', kind: 'end', cell: m => administers && <Acts name={m.model_alias} edit={() => { setChanging(m); }} end={() => { setEnding({ id: m.id, name: m.model_alias }); }} /> },
          ]} />
        )}
      </List>
      {(making || changing) && <SmartForm was={changing} close={() => { setMaking(false); setChanging(undefined); }} made={list.reload} />}
      {ending && <Delete what={ending} path={`${admin}/smart-models`} effect="Calls with this name are refused from then on." close={() => { setEnding(undefined); }} done={list.reload} />}
    </>
  );
}

const tabs: [string, string][] = [['aliases', 'Aliases'], ['smart', 'Smart models'], ['providers', 'Providers']];

export function Models(): JSX.Element {
  const administers = can(useMe().data, 'administer');
  const open = parameters.value.get('tab') ?? 'aliases';
  return (
    <Screen title="Models" about={<>Clients name an alias at <span class="mono">{show(`${location.origin}/api/llm-gateway/v1`)}</span>, and the gateway knows which model that is.</>}>
      <Tabs label="Parts of the models" open={open} tabs={tabs.map(([id, title]) => ({ id, title, to: `/organization/models?tab=${id}` }))} />
      {open === 'providers' ? <Providers administers={administers} /> : open === 'smart' ? <SmartModels administers={administers} /> : <Aliases administers={administers} />}
    </Screen>
  );
}
