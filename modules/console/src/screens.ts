// The screens. A new one is a file below screens and a line here; screens of administrators name the right that they need.
import type { JSX } from 'preact';
import { staff } from './session';
import type { Right } from './types';
import type { IconName } from './ui/icons';
import { Again } from './ui/relogin';
import { Activity } from './screens/activity';
import { Approvals } from './screens/approvals';
import { Clients } from './screens/clients';
import { Home } from './screens/home';
import { Keys } from './screens/keys';
import { Server } from './screens/server';
import { Servers } from './screens/servers';
import { Settings } from './screens/settings';
import { Agents } from './screens/organization/agents';
import { AuditLog } from './screens/organization/audit';
import { OrganizationKeys } from './screens/organization/keys';
import { Models } from './screens/organization/models';
import { NewServer } from './screens/organization/newserver';
import { Overview } from './screens/organization/overview';
import { People, Person } from './screens/organization/people';
import { Policies } from './screens/organization/policies';
import { NewPolicy, PolicyScreen } from './screens/organization/policy';
import { RefusedTokens } from './screens/organization/refused';
import { Review } from './screens/organization/review';
import { OrganizationServerScreen } from './screens/organization/server';
import { OrganizationServers } from './screens/organization/servers';
import { SmartModelScreen } from './screens/organization/smartmodel';
import { Budgets, Limits, Usage } from './screens/organization/spending';

export interface ScreenEntry {
  /** path is the address below /console. A part that begins with a colon stands for any name, which the screen gets. */
  path: string;
  title: string;
  show: (props: { name: string }) => JSX.Element;
  /** group is where the navigation has it: without one it has no entry there. There are seven groups at most. */
  group?: string;
  icon?: IconName;
  /** needs lists the rights of which a reader has one at least, or neither sees nor opens it. */
  needs?: Right[];
}

export const screens: ScreenEntry[] = [
  { path: '/', title: 'Home', group: 'You', icon: 'home', show: Home },
  { path: '/servers', title: 'My servers', group: 'You', icon: 'servers', show: Servers },
  { path: '/servers/:slug', title: 'Server', show: Server },
  { path: '/approvals', title: 'My approvals', group: 'You', icon: 'approvals', show: Approvals },
  { path: '/activity', title: 'My activity', group: 'You', icon: 'activity', show: Activity },
  { path: '/keys', title: 'My keys', group: 'Access', icon: 'keys', show: Keys },
  { path: '/clients', title: 'My clients', group: 'Access', icon: 'clients', show: Clients },
  { path: '/settings', title: 'Settings', group: 'Access', icon: 'gear', show: Settings },
  { path: '/again', title: 'Logged in', show: Again },
  { path: '/organization', title: 'Overview', group: 'Organization', icon: 'home', needs: ['operate_servers', 'read_everything'], show: Overview },
  { path: '/organization/servers', title: 'Servers', group: 'Organization', icon: 'servers', needs: staff, show: OrganizationServers },
  { path: '/organization/servers/new', title: 'Add a server', icon: 'plus', needs: ['operate_servers'], show: NewServer },
  { path: '/organization/servers/:slug', title: 'Server', needs: staff, show: OrganizationServerScreen },
  { path: '/organization/policies', title: 'Policies', group: 'Organization', icon: 'policies', needs: staff, show: Policies },
  { path: '/organization/policies/new', title: 'A new policy', icon: 'plus', needs: ['edit_policies'], show: NewPolicy },
  { path: '/organization/policies/:id', title: 'Policy', needs: staff, show: PolicyScreen },
  { path: '/organization/tools', title: 'Tools to review', group: 'Organization', icon: 'check', needs: ['edit_policies'], show: Review },
  { path: '/organization/agents', title: 'Agents', group: 'Organization', icon: 'agents', needs: staff, show: Agents },
  { path: '/organization/models', title: 'Models', group: 'Organization', icon: 'gear', needs: ['read_everything'], show: Models },
  { path: '/organization/models/:id', title: 'Smart model', needs: ['read_everything'], show: SmartModelScreen },
  { path: '/organization/keys', title: 'API keys', group: 'Organization', icon: 'keys', needs: ['read_everything'], show: OrganizationKeys },
  { path: '/organization/people', title: 'People', group: 'Organization', icon: 'people', needs: ['read_everything'], show: People },
  { path: '/organization/people/:id', title: 'Person', needs: ['read_everything'], show: Person },
  { path: '/organization/audit', title: 'Audit', group: 'Watch', icon: 'audit', needs: ['read_everything'], show: AuditLog },
  { path: '/organization/limits', title: 'Limits', group: 'Watch', icon: 'limits', needs: ['read_everything'], show: Limits },
  { path: '/organization/budgets', title: 'Budgets', group: 'Watch', icon: 'budgets', needs: ['read_everything'], show: Budgets },
  { path: '/organization/usage', title: 'Usage', group: 'Watch', icon: 'activity', needs: ['read_everything'], show: Usage },
  { path: '/organization/refused', title: 'Refused tokens', group: 'Watch', icon: 'warning', needs: ['read_everything'], show: RefusedTokens },
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
