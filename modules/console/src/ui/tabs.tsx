// Tabs. The address says which one is open, so each is a link.
import type { JSX } from 'preact';
import { Link } from '../router';

export function Tabs({ label, tabs, open }: { label: string; tabs: { to: string; title: string; id: string }[]; open: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(tab => <Link key={tab.id} to={tab.to} current={tab.id === open}>{tab.title}</Link>)}
    </nav>
  );
}
