// look.mjs TOOLS CHROMIUM PROFILE GATEWAY: opens screens of the console by the lines on standard input, each a JSON object, and
// answers each with a line: what is wrong. TOOLS: where npm installed playwright-core and axe-core; PROFILE: an empty directory.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [tools, executablePath, profile, gateway] = process.argv.slice(2);
const require = createRequire(tools + '/');
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const browser = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, chromiumSandbox: false, timezoneId: 'Asia/Tokyo', viewport: { width: 1280, height: 860 },
  permissions: ['clipboard-read', 'clipboard-write'],
  args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
browser.setDefaultTimeout(60_000);

let wrong = [];
// A script of somebody else that runs calls this.
await browser.exposeFunction('ran', what => { wrong.push(`a script ran: ${what}`); });
await browser.addInitScript(() => {
  document.addEventListener('securitypolicyviolation', event => console.error(`forbidden by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
});

const page = browser.pages()[0] ?? (await browser.newPage());
page.on('console', message => ['error', 'warning'].includes(message.type()) && complain(`the browser says: ${message.text()} ${message.location().url}`));
page.on('pageerror', error => complain(`an error in the script: ${error}`));
let requests = [];
page.on('request', request => requests.push(new URL(request.url()).pathname));
let refused = '';
// renewed says that a tab has logged in anew: what the other one was asking for at that moment is refused, and asked for again.
let renewed = false;
const complain = what => { if (renewed && /status of 401/.test(what)) return; if (!refused || !/status of 40[134]/.test(what) || !what.includes(refused)) wrong.push(what); };

// stale has the next request to a path refused as one for which the login is too old.
async function stale({ path }) {
  refused = path;
  await page.route(`**${path}`, route => route.fulfill({
    status: 403, contentType: 'application/json', body: JSON.stringify({ error: 'Forbidden', message: 'Log in again.', details: { login_url: '/login?fresh=1' } }),
  }), { times: 1 });
}

// answer has requests to a path answered with an object, as a gateway does that is in another state.
const answer = ({ path, body }) => page.route(`**${path}`, route => route.fulfill({ contentType: 'application/json', body }));

// download has a file made, which must have some texts, and so many lines.
async function download({ to, has, lines }) {
  const saved = page.waitForEvent('download');
  await keyboard({ to, key: 'Enter' });
  const text = readFileSync(await (await saved).path(), 'utf8');
  for (const part of has) if (!text.includes(part)) wrong.push(`the file has no ${part}: ${text.slice(0, 1000)}`);
  if (text.split('\r\n').length <= lines) wrong.push(`the file has less than ${lines} lines`);
}

// relogin follows a link into a tab of its own, and logs in there.
async function relogin({ to, user }) {
  renewed = true;
  const opened = browser.waitForEvent('page');
  await keyboard({ to, key: 'Enter' });
  const tab = await opened;
  await tab.getByRole('button', { name: user }).click();
  await tab.getByText('Your other tab goes on').waitFor();
  await tab.close();
}

// settled waits until the screen shows what it loads.
async function settled() {
  await page.locator('main h1').first().waitFor();
  await page.waitForFunction(() => !document.querySelector('.waiting'));
}

// login logs a user in by the way of the address that they opened, and comes back there.
async function login({ user, path }) {
  await browser.clearCookies();
  requests = [];
  await page.goto(gateway + path);
  await page.getByRole('button', { name: user }).click();
  await page.waitForURL(gateway + path);
  await settled();
}

// arrive logs in at an identity provider that asks nothing.
async function arrive({ path }) {
  await browser.clearCookies();
  requests = [];
  await page.goto(gateway + path);
  await page.waitForURL(gateway + path);
  await settled();
}

// acts checks that a screen offers what a reader may do, and nothing else; offers is what it has to have among that.
async function acts({ may, offers }) {
  const found = await page.locator('main').first().evaluate(main => [...main.querySelectorAll('button, a.button')].map(at => {
    const copy = at.cloneNode(true);
    for (const unseen of copy.querySelectorAll('.unseen')) unseen.remove();
    return copy.textContent.trim();
  }));
  for (const act of new Set(found)) if (!may.includes(act)) wrong.push(`${page.url()} offers "${act}"`);
  for (const act of offers) if (!found.includes(act)) wrong.push(`${page.url()} does not offer "${act}", but ${found.join(', ')}`);
  if (await page.locator('main .problem').count()) wrong.push(`${page.url()} shows a problem: ${await page.locator('main .problem').first().innerText()}`);
}

// screen opens a screen in one look, and has it checked; quick leaves out what takes axe as long as the screen takes.
async function screen({ path, scheme, width, quick, picture }) {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
  await page.setViewportSize({ width: width || 1280, height: width ? 844 : 860 });
  await page.goto(gateway + path);
  await settled();
  await (quick ? sound : inspect)(`${path} ${scheme}`);
  if (picture) await page.screenshot({ path: picture, fullPage: true });
}

// shot makes a picture of the first part of a screen, for readers who have no console.
async function shot({ path, picture }) {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1180, height: 760 });
  await page.goto(gateway + path);
  await settled();
  await page.screenshot({ path: picture });
}

// plain opens a page of the gateway that has no console in it.
async function plain({ path, scheme, width, picture }) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.setViewportSize({ width: width || 1280, height: width ? 844 : 860 });
  refused = path; // a page that says that there is none has a status that the browser reports
  await page.goto(gateway + path);
  await inspect(`${path} ${scheme}`);
  if (picture) await page.screenshot({ path: picture, fullPage: true });
}

// branded checks that the console's top and title are those of a brand, and that its picture was drawn.
async function branded({ name, logo }) {
  const top = await page.locator('.brand').innerText();
  if (top.trim() !== name) wrong.push(`at the top is ${top}`);
  if (!(await page.title()).endsWith(` · ${name}`)) wrong.push(`the title is ${await page.title()}`);
  const drawn = await page.locator('.brand img').evaluate(img => img.complete && img.naturalWidth > 0 && new URL(img.src).pathname);
  if (drawn !== logo) wrong.push(`the picture is ${drawn}`);
}

// themed checks that a page has the reader's colours before the console's script has come, under a system with others.
async function themed({ path, system, want }) {
  await page.emulateMedia({ colorScheme: system });
  await page.route('**/console/assets/console.*.js', route => route.abort());
  await page.goto(gateway + path);
  const drawn = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.unroute('**/console/assets/console.*.js');
  wrong = wrong.filter(what => !what.includes('/console/assets/console.'));
  if (drawn !== want) wrong.push(`the page begins in ${drawn}, not ${want}`);
}

// drawing opens the address of a picture by itself. Whatever is in it, nothing runs: the browser says that it forbids it.
async function drawing({ path }) {
  await page.goto(gateway + path, { waitUntil: 'load' });
  const forbidden = wrong.filter(what => /sandboxed|Content Security Policy|forbidden by the policy/.test(what));
  wrong = wrong.filter(what => !forbidden.includes(what));
  if (forbidden.length === 0) wrong.push('the browser forbids nothing in the picture');
}

// filled checks that the screen has no list without rows.
async function filled() {
  const empty = await page.locator('main .empty').allInnerTexts();
  if (empty.length > 0) wrong.push(`${page.url()} is empty: ${empty.join(', ')}`);
}

async function inspect(where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  for (const v of found.violations) wrong.push(`${where}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ')).join(', ')}`);
  await sound(where);
}

// sound checks what no screen may have.
async function sound(where) {
  wrong.push(...(await page.evaluate(where => {
    const faults = [];
    if (document.querySelectorAll('h1').length !== 1) faults.push(`${where}: not one heading`);
    if (Object.keys(localStorage).some(name => name !== 'theme') || sessionStorage.length > 0 || document.cookie) faults.push(`${where}: something is stored in the page`);
    if (/eyJ[\w-]{20,}\./.test(document.documentElement.outerHTML)) faults.push(`${where}: a token is in the page`);
    const hidden = document.body.innerText.match(/[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/);
    if (hidden) faults.push(`${where}: a hidden character is in the text`);
    if (document.documentElement.scrollWidth > innerWidth) faults.push(`${where}: ${document.documentElement.scrollWidth} pixels wide in ${innerWidth}`);
    return faults;
  }, where)));
}

// keyboard goes to a control with the tabulator alone, and presses a key there.
async function keyboard({ to, key, text }) {
  for (let steps = 0; steps < 200; steps++) {
    const name = await page.evaluate(() => {
      const at = document.activeElement;
      return (at?.getAttribute('aria-label') ?? at?.labels?.[0]?.textContent ?? at?.textContent ?? '').trim();
    });
    const visible = await page.evaluate(() => {
      const at = document.activeElement;
      return at?.matches(':focus-visible') && getComputedStyle(at).outlineStyle !== 'none';
    });
    if (name === to) {
      if (!visible) wrong.push(`the focus on ${to} is not seen`);
      if (text) await page.keyboard.type(text);
      if (key) await page.keyboard.press(key);
      return;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`no way to ${to} by keyboard`);
}

const commands = {
  login, arrive, acts, screen, plain, branded, drawing, themed, keyboard, stale, answer, download, relogin, filled, shot,
  until: ({ text }) => page.getByText(text).first().waitFor(),
  fill: ({ label, nth = 0, text }) => page.getByRole('dialog').getByLabel(label, { exact: true }).nth(nth).fill(text),
  choose: ({ label }) => page.getByLabel(label, { exact: true }).check(),
  labelled: ({ text }) => page.getByLabel(text).first().waitFor(),
  gone: ({ text }) => page.getByText(text).first().waitFor({ state: 'detached' }),
  press: async ({ key, text }) => { if (text) await page.keyboard.type(text); if (key) await page.keyboard.press(key); },
  option: ({ text }) => page.getByRole('option', { selected: true }).filter({ hasText: text }).waitFor(),
  at: async ({ path }) => { await page.waitForURL(url => url.pathname.startsWith(path)); await settled(); },
  // asked checks that the page has sent so many requests to a path since its last login.
  asked: ({ path, times }) => {
    const sent = requests.filter(to => to.startsWith(path)).length;
    if (sent !== times) complain(`${sent} requests to ${path}, not ${times}`);
  },
  inspect: () => inspect(page.url()),
  picture: async ({ path }) => { if (path) await page.screenshot({ path, fullPage: true }); },
  forget: async () => { await browser.clearCookies(); await page.reload(); },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    await commands[command.do](command);
  } catch (error) {
    const text = await page.locator('body').innerText().catch(() => '');
    wrong.push(`${line} at ${page.url()}: ${String(error).split('\n')[0]}; it shows: ${text.slice(0, 1000)}`);
  }
  process.stdout.write(JSON.stringify({ wrong }) + '\n');
  wrong = [];
}
await browser.close();
