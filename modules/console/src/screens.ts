// The screens. A new one is a file below screens and a line here; screens of administrators name the right that they need.
import type { JSX } from 'preact';
import type { Right } from './types';
import type { IconName } from './ui/icons';
import { Activity } from './screens/activity';
import { Approvals } from './screens/approvals';
import { Clients } from './screens/clients';
import { Home } from './screens/home';
import { Keys } from './screens/keys';
import { Server } from './screens/server';
import { Servers } from './screens/servers';

export interface ScreenEntry {
  /** path is the address below /console. A part that begins with a colon stands for any name, which the screen gets. */
  path: string;
  title: string;
  show: (props: { name: string }) => JSX.Element;
  /** group is where the navigation has it: without one it has no entry there. There are seven groups at most. */
  group?: string;
  icon?: IconName;
  /** needs is the right without which a reader neither sees nor opens it. */
  needs?: Right;
}

export const screens: ScreenEntry[] = [
  { path: '/', title: 'Home', group: 'You', icon: 'home', show: Home },
  { path: '/servers', title: 'My servers', group: 'You', icon: 'servers', show: Servers },
  { path: '/servers/:slug', title: 'Server', show: Server },
  { path: '/approvals', title: 'My approvals', group: 'You', icon: 'approvals', show: Approvals },
  { path: '/activity', title: 'My activity', group: 'You', icon: 'activity', show: Activity },
  { path: '/keys', title: 'My keys', group: 'Access', icon: 'keys', show: Keys },
  { path: '/clients', title: 'My clients', group: 'Access', icon: 'clients', show: Clients },
];

/** find returns the screen of a path, and the name in it. */
export function find(path: string): { screen: ScreenEntry; name: string } | undefined {
  for (const screen of screens) {
    const parts = screen.path.split('/');
    const given = path.split('/');
    if (parts.length !== given.length || !parts.every((part, i) => part.startsWith(':') ? given[i] : part === given[i])) continue;
    const named = parts.findIndex(part => part.startsWith(':'));
    try {
      return { screen, name: named < 0 ? '' : decodeURIComponent(given[named] ?? '') };
    } catch {
      return undefined;
    }
  }
  return undefined;
}
