// The palette: the way by keyboard to every screen, server, agent and person.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, query } from '../api';
import { everything, useLoad } from '../load';
import type { Agent, Keyed, User } from '../organization';
import { go } from '../router';
import { screens } from '../screens';
import { can, sees, staff, useServers } from '../session';
import { show } from '../text';
import type { Me } from '../types';
import { Dialog } from './dialog';
import { Icon, type IconName } from './icons';

interface Found {
  to: string;
  title: string;
  /** beside tells objects of the same name apart. */
  beside: string;
  icon: IconName;
}

/** most is the number of objects that are offered at once. */
const most = 12;

/** usePeople asks for the people whom a text fits, once the reader pauses. */
function usePeople(me: Me, text: string): Found[] {
  const [people, setPeople] = useState<Found[]>([]);
  useEffect(() => {
    setPeople([]);
    if (!text.trim() || !can(me, 'read_everything')) return;
    let over = false;
    const timer = setTimeout(() => {
      call<Keyed<User>>('GET', `/api/users${query({ search: text.trim().slice(0, 255), limit: 5 })}`).then(page => {
        if (!over) setPeople(page.data.map(u => ({ to: `/organization/people/${u.id}`, title: u.email ?? u.name ?? u.subject, beside: 'Person', icon: 'people' })));
      }, () => { /* the rest can still be found */ });
    }, 200);
    return () => { over = true; clearTimeout(timer); };
  }, [text]);
  return people;
}

/** useObjects gives what the reader can go to. */
function useObjects(me: Me): Found[] {
  const servers = useServers();
  const agents = useLoad<Agent[]>('/api/agents', 0, path => everything<Agent>(path));
  const looksAfter = sees(me, staff);
  return [
    ...screens.filter(s => s.icon && sees(me, s.needs)).map(s => ({ to: s.path, title: s.title, beside: s.group ?? 'Act', icon: s.icon ?? 'arrow' })),
    ...(servers.data ?? []).map((s): Found => ({ to: `${looksAfter ? '/organization' : ''}/servers/${encodeURIComponent(s.slug)}`, title: s.name, beside: `Server ${s.slug}`, icon: 'servers' })),
    ...(looksAfter ? agents.data ?? [] : []).map(({ application_directory: a }): Found => ({ to: `/organization/agents${query({ search: a.external_id })}`, title: a.name, beside: `Agent ${a.external_id}`, icon: 'agents' })),
  ];
}

function Search({ me, close }: { me: Me; close: () => void }): JSX.Element {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = useObjects(me).filter(f => words.every(w => `${f.title} ${f.beside}`.toLowerCase().includes(w)));
  const found = [...fits.slice(0, most), ...usePeople(me, text)];
  const chosen = Math.min(at, found.length - 1);
  const choose = (f: Found | undefined): void => {
    if (!f) return;
    close();
    go(f.to);
  };
  const key = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing || (step === undefined && event.key !== 'Enter')) return;
    event.preventDefault();
    if (step === undefined) choose(found[chosen]);
    else if (found.length > 0) setAt((chosen + step + found.length) % found.length);
  };
  useEffect(() => { document.getElementById(`found-${chosen}`)?.scrollIntoView({ block: 'nearest' }); }, [chosen]);
  return (
    <div class="palette">
      <input type="text" role="combobox" aria-label="Name" aria-expanded="true" aria-controls="found" aria-autocomplete="list" aria-activedescendant={found.length > 0 ? `found-${chosen}` : undefined}
        placeholder="Screen, server, agent or person" autocomplete="off" spellcheck={false} value={text}
        onInput={event => { setText(event.currentTarget.value); setAt(0); }} onKeyDown={key} />
      <ul id="found" role="listbox" aria-label="Found">
        {found.map((f, i) => (
          <li key={`${f.to} ${f.beside}`} id={`found-${i}`} role="option" aria-selected={i === chosen} onClick={() => { choose(f); }}>
            <Icon name={f.icon} /><span>{show(f.title, 80)}</span><span class="small">{show(f.beside, 80)}</span>
          </li>
        ))}
      </ul>
      <p class="small" role="status">{found.length === 0 ? 'Nothing has this name.' : fits.length > most ? `${fits.length - most} more: type more of the name.` : ''}</p>
    </div>
  );
}

/** Palette is the button that opens the search, as Ctrl-K does. */
export function Palette({ me }: { me: Me }): JSX.Element {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      if (!document.querySelector('dialog[open]')) setOpen(true);
    };
    addEventListener('keydown', key);
    return () => { removeEventListener('keydown', key); };
  }, []);
  return (
    <>
      <button type="button" class="seek" aria-keyshortcuts="Control+K" onClick={() => { setOpen(true); }}><Icon name="search" /><span class="seekwords">Go to</span><kbd aria-hidden="true">Ctrl K</kbd></button>
      {open && <Dialog title="Go to" close={() => { setOpen(false); }}><Search me={me} close={() => { setOpen(false); }} /></Dialog>}
    </>
  );
}
