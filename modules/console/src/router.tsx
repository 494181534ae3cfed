// The address holds the whole state of a screen: it can be sent to somebody, and "back" works.
import { computed, signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';

const root = '/console';

const address = signal(read());

function read(): { path: string; search: string } {
  const path = location.pathname.replace(/\/+$/, '');
  return { path: path.startsWith(root) ? path.slice(root.length) || '/' : '/', search: location.search };
}

/** path is the address of the screen, below the console's. */
export const path = computed(() => address.value.path);

/** parameters are those of the address. */
export const parameters = computed(() => new URLSearchParams(address.value.search));

addEventListener('popstate', () => { address.value = read(); });

/** href is the address of a screen for the browser. */
export const href = (to: string): string => (to === '/' ? root : root + to);

/** go shows another screen. */
export function go(to: string): void {
  history.pushState(null, '', href(to));
  address.value = read();
  scrollTo(0, 0);
}

/** set changes parameters of the address; "" removes one. The entry in the history is replaced. */
export function set(changes: Record<string, string>): void {
  const next = new URLSearchParams(address.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  history.replaceState(null, '', location.pathname + (text && `?${text}`));
  address.value = read();
}

/** Link leads to another screen, and is an ordinary link for everything but a plain click. */
export function Link({ to, class: name, current, children, label }: {
  to: string; class?: string; current?: boolean; children: ComponentChildren; label?: string;
}): JSX.Element {
  return (
    <a href={href(to)} class={name} aria-current={current ? 'page' : undefined} aria-label={label} onClick={(event: MouseEvent) => {
      if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      go(to);
    }}>{children}</a>
  );
}
