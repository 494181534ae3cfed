// The icons: lines of one width, 20 by 20, drawn in the colour of their text.
import type { JSX } from 'preact';

const paths = {
  home: 'M3 9.5 10 3.5l7 6M5 8.5V16h10V8.5M8.5 16v-4h3v4',
  servers: 'M3.5 4h13v5h-13zM3.5 11h13v5h-13zM6.5 6.5h.01M6.5 13.5h.01',
  approvals: 'M10 3 16 5.5V10c0 3.5-2.5 6-6 7-3.5-1-6-3.5-6-7V5.5zM7.5 10l1.8 1.8L12.8 8.2',
  keys: 'M7 13.5a3 3 0 1 1 2.6-4.5H17v3h-2v2h-2.5v-2H9.6A3 3 0 0 1 7 13.5zM7 10.5h.01',
  clients: 'M3 4.5h14v9H3zM7.5 16.5h5M10 13.5v3',
  activity: 'M3 10h3l2-5.5 4 11 2-5.5h3',
  policies: 'M5 3h8l2 2v12H5zM7.5 8h5M7.5 11h5M7.5 14h3',
  agents: 'M5 8h10v8H5zM10 8V4.5M10 4.5h.01M8 11.5h.01M12 11.5h.01M8 14h4',
  people: 'M7.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 16c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M13 5a2.3 2.3 0 0 1 0 4.5M14 12.2c1.8.4 3 1.8 3 3.8',
  audit: 'M4 4h12v12H4zM4 8h12M8 8v8',
  limits: 'M3.5 14a6.5 6.5 0 1 1 13 0M10 14l3-4.5',
  budgets: 'M3.5 6h13v9h-13zM3.5 9h13M6 12.5h3',
  gear: 'M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 3v2M10 15v2M3 10h2M15 10h2M5 5l1.5 1.5M13.5 13.5 15 15M15 5l-1.5 1.5M6.5 13.5 5 15',
  plus: 'M10 4v12M4 10h12',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  check: 'M4 10.5 8 14.5 16 6',
  warning: 'M10 3.5 17.5 16h-15zM10 8.5v3.5M10 14h.01',
  out: 'M8 4H4v12h4M12 6.5 15.5 10 12 13.5M15.5 10H8',
  arrow: 'M7.5 4.5 13 10l-5.5 5.5',
  menu: 'M3 5.5h14M3 10h14M3 14.5h14',
  search: 'M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM12.7 12.7 17 17',
} as const;

export type IconName = keyof typeof paths;

/** Icon draws an icon. It says nothing to screen readers: a text stands beside it. */
export const Icon = ({ name }: { name: IconName }): JSX.Element => (
  <svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d={paths[name]} /></svg>
);
