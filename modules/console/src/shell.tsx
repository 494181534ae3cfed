// The shell around the screens: navigation, the bar on top, and news.
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { loggedOut, logoutForm } from './api';
import { brand, logo } from './brand';
import { href, Link, path } from './router';
import { find, screens } from './screens';
import { nameOf, sees, useHeld, useMe } from './session';
import { show } from './text';
import { Empty, Problem, Screen, Waiting } from './ui/basics';
import { Icon } from './ui/icons';
import { Palette } from './ui/palette';
import { Relogin } from './ui/relogin';
import { Toasts } from './ui/toast';
import type { Me } from './types';

const Brand = (): JSX.Element => (
  <Link to="/" class="brand">
    {logo === undefined
      ? <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 22V10a8 8 0 0 1 16 0v12z" /><path d="M12 9.2a2.6 2.6 0 0 1 1.3 4.8l.9 4.4H9.8l.9-4.4A2.6 2.6 0 0 1 12 9.2z" /></svg>
      : logo && <img src={logo} alt="" />}
    <span class="brandname">{brand}</span>
  </Link>
);

/** Navigation lists the screens that the reader may see, in their groups. */
function Navigation({ me, held }: { me: Me | undefined; held: number }): JSX.Element {
  const seen = screens.filter(s => s.group && sees(me, s.needs));
  const here = path.value;
  const at = (to: string): boolean => (to === '/' || to === '/organization' ? here === to : here === to || here.startsWith(`${to}/`));
  return (
    <nav class="side" id="navigation" popover="auto" aria-label="Console">
      {[...new Set(seen.map(s => s.group))].map(group => (
        <div key={group} class="group">
          <p class="grouptitle" id={`group-${group ?? ''}`}>{group}</p>
          <ul aria-labelledby={`group-${group ?? ''}`}>
            {seen.filter(s => s.group === group).map(s => (
              <li key={s.path}>
                <Link to={s.path} current={at(s.path)}>
                  {s.icon && <Icon name={s.icon} />}<span>{s.title}</span>
                  {s.path === '/approvals' && held > 0 && <span class="badge">{held}<span class="unseen"> waiting</span></span>}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

/** Account shows who is logged in, and the way out. Logging out is a form of the gateway's pages, so that it works as there. */
function Account({ me }: { me: Me }): JSX.Element {
  const name = show(nameOf(me), 60);
  return (
    <details class="account">
      <summary><span class="avatar" aria-hidden="true">{[...name][0]?.toUpperCase()}</span><span class="who">{name}</span></summary>
      <div class="menu">
        <p><strong>{name}</strong><br /><span class="small">{show(me.organization.slug ?? me.organization.id)}{me.roles.length > 0 && ` · ${show(me.roles.join(', '), 80)}`}</span></p>
        <a href="/docs" target="_blank" rel="noopener">API documentation</a>
        <form method="post" action="/logout">
          <input type="hidden" name="form" value={logoutForm.value} />
          <button type="submit" class="quiet"><Icon name="out" />Log out</button>
        </form>
      </div>
    </details>
  );
}

/** Ended says that the session is over. The reader logs in when they like: a page never leads away by itself. */
const Ended = (): JSX.Element => (
  <div class="problem" role="alert">
    <Icon name="warning" />
    <div><p><strong>Your login has ended.</strong> Log in again, and you come back to this screen.</p></div>
    <a class="button main" href={`/login?${new URLSearchParams({ again: '1', return: href(path.value) + location.search }).toString()}`}>Log in</a>
  </div>
);

/** Current shows the screen of the address. */
function Current({ me }: { me: Me }): JSX.Element {
  const found = find(path.value);
  if (!found || !sees(me, found.screen.needs)) {
    return <Screen title="There is no such screen"><Empty icon="search" title="Nothing is at this address, or you may not see it."><Link to="/" class="button">To the start</Link></Empty></Screen>;
  }
  const Show = found.screen.show;
  return <Show key={path.value} name={found.name} />;
}

export function Shell(): JSX.Element {
  const me = useMe();
  const held = useHeld(me.data);
  const waiting = held.data?.length ?? 0;
  const content = useRef<HTMLElement>(null);
  const first = useRef(true);
  const title = find(path.value)?.screen.title ?? 'Console';
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${title} · ${brand}`;
  }, [title, waiting]);
  useEffect(() => { // who goes to another screen by keyboard goes on at its beginning
    if (!first.current) content.current?.querySelector('h1')?.focus({ preventScroll: true });
    first.current = false;
    document.getElementById('navigation')?.hidePopover();
    document.querySelector('.account[open]')?.removeAttribute('open');
  }, [path.value]);
  return (
    <>
      <a class="skip" href="#content">To the content</a>
      <header class="top">
        <button type="button" class="opener" popovertarget="navigation"><Icon name="menu" /><span class="unseen">Screens</span></button>
        <Brand />
        {me.data && <span class="organization" title="Your organization">{show(me.data.organization.slug ?? me.data.organization.id, 40)}</span>}
        <span class="gap" />
        {me.data && <Palette me={me.data} />}
        {waiting > 0 && <Link to="/approvals" class="held"><Icon name="approvals" /><span>{waiting}</span><span class="heldwords">{waiting === 1 ? 'held call' : 'held calls'}</span></Link>}
        {me.data && <Account me={me.data} />}
      </header>
      <div class="body">
        <Navigation me={me.data} held={waiting} />
        <main id="content" tabIndex={-1} ref={content}>
          {loggedOut.value && <Ended />}
          {me.error && !me.data && <Problem error={me.error} />}
          {me.data ? <Current me={me.data} /> : !me.error && <Screen title={title}><Waiting /></Screen>}
        </main>
      </div>
      <Relogin />
      <Toasts />
    </>
  );
}
