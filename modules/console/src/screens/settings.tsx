// Settings: the colours for this browser, and who the gateway takes the reader for.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { chosenTheme, chooseTheme, type Theme } from '../theme';
import { can, useMe } from '../session';
import { show } from '../text';
import { useLoad } from '../load';
import { Problem, Screen, Section, Waiting } from '../ui/basics';
import { Table } from '../ui/table';
import type { Fixed, Me } from '../types';

type Provider = Fixed['identity_providers'][number];
type Option = Fixed['options'][number];

const themes: [Theme, string][] = [['', 'As the system'], ['light', 'Light'], ['dark', 'Dark']];

export function Settings(): JSX.Element {
  const me = useMe().data;
  return (
    <Screen title="Settings" about={`What the gateway takes you for${can(me, 'read_everything') ? ', and what its configuration fixed' : ''}.`}>
      <Section title="Colours"><Themes /></Section>
      {me && <Section title="You"><Identity me={me} /></Section>}
      {can(me, 'read_everything') && <Configuration />}
    </Screen>
  );
}

function Themes(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme);
  const choose = (to: Theme): void => { chooseTheme(to); setTheme(to); };
  return (
    <fieldset class="panel themes">
      <legend class="unseen">Colours</legend>
      {themes.map(([value, label]) => (
        <label key={value} class="check"><input type="radio" name="theme" checked={theme === value} onChange={() => choose(value)} />{label}</label>
      ))}
      <p class="small">Kept in this browser. Pages without scripts, such as the one for a held call, follow the system.</p>
    </fieldset>
  );
}

const list = (names: string[]): string => show(names.join(', '), 400) || 'none';

const rights: Record<string, string> = {
  read_everything: 'read everything', edit_policies: 'edit policies', operate_servers: 'operate servers', administer: 'administer', decide_approvals: 'decide on held calls',
};

const Identity = ({ me }: { me: Me }): JSX.Element => (
  <dl class="panel">
    <dt>Name</dt><dd>{show(me.user.name) || '–'}</dd>
    <dt>E-mail</dt><dd>{show(me.user.email) || '–'}</dd>
    <dt>Organization</dt><dd>{show(me.organization.slug ?? me.organization.id)}</dd>
    <dt>Identity provider</dt><dd class="mono">{show(me.user.issuer)}</dd>
    <dt>Known there as</dt><dd class="mono">{show(me.user.subject)}</dd>
    <dt>Roles</dt><dd>{list(me.roles)}</dd>
    <dt>Groups</dt><dd>{list(me.groups)}</dd>
    <dt>You may</dt><dd>{me.may.map(right => rights[right] ?? show(right)).join(', ') || 'what every user may'}</dd>
  </dl>
);

/** Place shows where a Caddyfile has something. */
const Place = ({ at, given = true }: { at: string | null; given?: boolean }): JSX.Element =>
  at ? <code>{show(at, 300)}</code> : <span class="small">{given ? 'line not known' : 'default'}</span>;

function Configuration(): JSX.Element {
  const fixed = useLoad<Fixed>('/api/config');
  if (fixed.error && !fixed.data) return <Problem error={fixed.error} />;
  if (!fixed.data) return <Waiting />;
  const unknown = ![...fixed.data.options, ...fixed.data.identity_providers].some(o => o.at);
  return (
    <>
      <Section title="Identity providers">
        <p class="small hintabove">Those whose tokens can name your organization.</p>
        <Table<Provider> label="Identity providers" rows={fixed.data.identity_providers} id={p => p.issuer} columns={[
          { title: 'Issuer', kind: 'wide', cell: p => <span class="mono">{show(p.issuer)}</span> },
          { title: 'Organization', cell: p => show(p.organization) || 'named by its tokens' },
          { title: 'Audience', cell: p => p.audience.length > 0 ? list(p.audience) : 'any' },
          { title: 'Client for logins', cell: p => show(p.login_client) || 'none' },
          { title: 'Written at', cell: p => <Place at={p.at} /> },
        ]} />
      </Section>
      <Section title="Fixed by the configuration">
        <p class="small hintabove">
          The operator changes it in the Caddyfile. {unknown ? 'This gateway was configured by JSON that names no lines.' : 'The line is that of the option or of the block that has it.'}
        </p>
        <Table<Option> label="Options of the configuration" rows={fixed.data.options} id={o => o.option} columns={[
          { title: 'Option', kind: 'wide', cell: o => <code>{show(o.option)}</code> },
          { title: 'Value', cell: o => list(o.values) },
          { title: 'Written at', cell: o => <Place at={o.at} given={o.given} /> },
        ]} />
      </Section>
    </>
  );
}
