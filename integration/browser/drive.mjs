// drive.mjs TOOLS CHROMIUM PROFILE: drives a Chromium by the lines on standard input, each a JSON object, and answers each
// with a line: {error?} or where the browser is now, the documents that it went through, and everything that it
// complained about. TOOLS: where npm installed playwright-core; PROFILE: an empty directory.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [tools, executablePath, profile] = process.argv.slice(2);
const { chromium } = createRequire(tools + '/')('playwright-core');
const patience = 60_000;

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, chromiumSandbox: false,
  args: ['--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
context.setDefaultTimeout(patience);
const page = context.pages()[0] ?? (await context.newPage());

let complaints = [];
let documents = [];
page.on('console', message => {
  // An error page is a page.
  const ofThePage = message.text().startsWith('Failed to load resource') && message.location().url === page.url();
  if (['error', 'warning'].includes(message.type()) && !ofThePage) complaints.push(message.text());
});
page.on('pageerror', error => complaints.push(String(error)));
page.on('requestfailed', request => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
page.on('response', response => {
  const request = response.request();
  if (request.isNavigationRequest()) {
    documents.push(request.allHeaders().then(headers => ({
      status: response.status(), method: request.method(), url: response.url(), origin: headers.origin ?? '', referer: headers.referer ?? '',
    })));
  }
});

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

const commands = {
  open: ({ url }) => page.goto(url),
  click: ({ name }) => settle(() => page.getByRole('button', { name }).click()),
  fill: ({ name, text }) => page.getByLabel(name).fill(text),
  until: ({ text }) => page.getByText(text).first().waitFor(),
  picture: ({ path }) => page.screenshot({ path, fullPage: true }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    await commands[command.do](command);
    answer = { ...(await look()), documents: await Promise.all(documents), complaints };
  } catch (error) {
    answer = { error: String(error), url: page.url(), complaints };
  }
  [complaints, documents] = [[], []];
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await context.close();
