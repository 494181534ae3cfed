// drive.mjs TOOLS CHROMIUM PROFILE [without-scripts]: drives a Chromium by the lines on standard input, each a JSON object, and
// answers each with a line: {error?} or where the browser is now, the documents that it went through, and everything that it
// complained about. TOOLS: where npm installed playwright-core; PROFILE: an empty directory; without-scripts: no page runs one.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [tools, executablePath, profile, without] = process.argv.slice(2);
const { chromium } = createRequire(tools + '/')('playwright-core');
const patience = 60_000;

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, chromiumSandbox: false,
  // Another zone than the gateway's: pages show times by the reader's clock.
  timezoneId: 'Asia/Tokyo',
  javaScriptEnabled: !without,
  // What others' pages load from elsewhere does not keep tests waiting.
  args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
context.setDefaultTimeout(patience);

let complaints = [];
let documents = [];
let minded = ''; // complaints count on pages below this address
let injected = false; // the page has scripts that the browser has to complain about
const complain = (where, what) => where.startsWith(minded) && !injected && complaints.push(what);

// watch listens to what the browser says of a tab.
function watch(tab) {
  tab.on('console', message => {
    // An error page is a page.
    const ofThePage = message.text().startsWith('Failed to load resource') && message.location().url === tab.url();
    if (['error', 'warning'].includes(message.type()) && !ofThePage) complain(message.location().url, message.text());
  });
  tab.on('pageerror', error => complain(tab.url(), String(error)));
  tab.on('requestfailed', request => complain(request.isNavigationRequest() ? request.url() : request.frame().url(), `${request.url()}: ${request.failure()?.errorText}`));
  tab.on('response', response => {
    const request = response.request();
    if (request.isNavigationRequest()) {
      documents.push(request.allHeaders().then(headers => ({
        status: response.status(), method: request.method(), url: response.url(), origin: headers.origin ?? '', referer: headers.referer ?? '',
      })));
    }
  });
  return tab;
}
let page = watch(context.pages()[0] ?? (await context.newPage()));
const behind = []; // the tabs that were left open

// settle does something that leads to another document, and waits until that is there.
async function settle(act) {
  const loaded = page.waitForEvent('load');
  await act();
  await loaded;
}

// look tells where the browser is. A page may lead on to another one by itself while it is looked at.
async function look() {
  for (let patience = 20; ; patience--) {
    try {
      return { url: page.url(), title: await page.title(), text: await page.locator('body').innerText() };
    } catch (error) {
      if (patience === 0) throw error;
      await page.waitForLoadState('load');
    }
  }
}

// faults are what people who use no mouse, a screen reader or a narrow screen would stumble over (WCAG 2.2). Pages of others are
// left alone.
const faults = () => page.evaluate(scripts => {
  if (!document.querySelector('.brand')) return [];
  const wrong = [];
  const check = (holds, what) => holds || wrong.push(`${location.pathname}: ${what}`);
  check(document.documentElement.lang === 'en', 'no language');
  check(document.querySelectorAll('h1').length === 1 && document.querySelector('main h1'), 'not one heading');
  check(document.querySelector('link[rel=icon]'), 'no icon');
  check(document.querySelector('a,button,input')?.matches('.skip'), 'no way past the header');
  for (const field of document.querySelectorAll('input:not([type=hidden]),select,textarea')) check(field.labels.length > 0, `${field.name} has no label`);
  for (const act of document.querySelectorAll('a,button')) check(act.textContent.trim(), `${act.outerHTML} has no name`);
  for (const time of document.querySelectorAll('time')) check(!isNaN(Date.parse(time.dateTime)), `${time.outerHTML} is no time`);
  // The script that shows times by the reader's clock is the only one, and comes from the site.
  check(document.querySelectorAll('script').length <= 1, 'more than one script');
  for (const script of document.scripts) check(script.src.startsWith(location.origin + '/') && !script.textContent, 'an inline script');
  for (const time of document.querySelectorAll('time')) check(/GMT\+9$/.test(time.textContent) === scripts, `${time.textContent}, with scripts: ${scripts}`);
  return wrong;
}, !without);

// reflow reports whether a page of ours fits a width of 320 pixels (WCAG 2.2, 1.4.10).
async function reflow() {
  if ((await page.locator('.brand').count()) === 0) return [];
  const before = page.viewportSize();
  await page.setViewportSize({ width: 320, height: 640 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.setViewportSize(before);
  return width > 320 ? [`${page.url()} is ${width} pixels wide in 320`] : [];
}

// picture shows a page as it is on a desk and on a phone, in light and in dark.
async function picture({ path }) {
  const before = page.viewportSize();
  for (const [device, viewport] of Object.entries({ desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } })) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: path.replace('.png', `-${device}-${colorScheme}.png`), fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(before);
}

// inject puts scripts into a page as somebody could who got markup past its escaping: in an element, in an attribute, from a data URL,
// from another site. It complains of each that ran, and unless the browser says of all that the policy forbids them.
async function inject({ source }) {
  injected = true;
  const { ran, forbidden } = await page.evaluate(async ({ source, patience }) => {
    const ran = [];
    let forbidden = 0;
    const all = new Promise(resolve => document.addEventListener('securitypolicyviolation', () => ++forbidden === 4 && resolve()));
    addEventListener('message', event => ran.push(event.data));
    const element = document.createElement('script');
    element.textContent = 'postMessage("element")';
    const picture = document.createElement('img');
    picture.setAttribute('onerror', 'postMessage("attribute")');
    picture.src = 'data:,none';
    const loaded = ['data:text/javascript,postMessage("data")', source].map(src => Object.assign(document.createElement('script'), { src }));
    const ended = loaded.map(script => new Promise(resolve => { script.onload = script.onerror = resolve; }));
    const failed = new Promise(resolve => picture.addEventListener('error', resolve));
    document.body.append(element, picture, ...loaded);
    await Promise.all([...ended, failed]);
    if (ran.length === 0) await Promise.race([all, new Promise(resolve => setTimeout(resolve, patience))]);
    for (const added of [element, picture, ...loaded]) added.remove();
    return { ran, forbidden };
  }, { source, patience });
  complaints = ran.map(what => `a script ran: ${what}`);
  if (forbidden !== 4) complaints.push(`${forbidden} of 4 scripts were forbidden`);
}

// popup does something that opens another tab, and goes on there.
async function popup(act) {
  const opened = page.waitForEvent('popup');
  await act();
  behind.push(page);
  page = watch(await opened);
  await page.waitForURL(/^http/);
}

// leave closes a tab and goes on in the one before.
async function leave() {
  await page.close();
  page = behind.pop();
}

const commands = {
  mind: ({ origin }) => { minded = origin; },
  open: ({ url }) => { injected = false; return page.goto(url); },
  click: ({ name }) => settle(() => page.getByRole('button', { name }).click()),
  press: ({ name }) => page.getByRole('button', { name }).first().click(),
  toggle: ({ name }) => page.getByRole('switch', { name }).click({ force: true }), // what is clicked lies above it
  pick: ({ text }) => page.getByText(text, { exact: true }).first().click(),
  popup: ({ name }) => popup(() => page.getByRole('button', { name }).click()),
  leave,
  fill: ({ name, text }) => page.getByLabel(name).or(page.getByPlaceholder(name)).and(page.locator('input, textarea, select')).fill(text),
  until: ({ text }) => page.getByText(text).first().waitFor(),
  follow: ({ name }) => settle(() => page.getByRole('link', { name }).first().click()),
  picture,
  inject,
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    await commands[command.do](command);
    const seen = await look();
    complaints.push(...(await faults()), ...(await reflow()));
    answer = { ...seen, documents: await Promise.all(documents), complaints };
  } catch (error) {
    answer = { error: String(error), ...(await look().catch(() => ({ url: page.url() }))), complaints };
  }
  [complaints, documents] = [[], []];
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await context.close();
