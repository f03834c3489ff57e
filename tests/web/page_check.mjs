// What tests of pages share: a browser, and a look at a page as it stands.
import assert from 'node:assert/strict';
import {existsSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {setTimeout as sleep} from 'node:timers/promises';
import {chromium} from 'playwright-core';

export function skip(test, reason) {
  console.log(`SKIPPED: ${test}: ${reason}`);
  process.exit(77);
}

export async function openBrowser(test) {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
  if (executablePath === undefined) skip(test, 'Chromium is not installed (apt-get install chromium)');
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
           '--disable-background-networking', '--disable-component-update'],
  });
}

// Within a minute. `log`: what the program says, for the error.
export async function until(what, condition, log = () => '') {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(20)) {
    const found = await condition();
    if (found) return found;
  }
  throw new Error(`never: ${what}\n${log().slice(-2000)}`);
}

// All pages of a list of the API; `path` ends with ? or &.
export async function all(base, path) {
  const out = [];
  for (let before = ''; ;) {
    const page = await (await fetch(`${base}${path}limit=100${before}`)).json();
    out.push(...page.items);
    if (page.next === null) return out;
    before = `&before=${encodeURIComponent(page.next)}`;
  }
}

// A case that opens between the two answers is in both, not in none.
export async function openCases(base) {
  const cases = [...await all(base, '/v1/cases?state=provisional&'), ...await all(base, '/v1/cases?state=open&')];
  return [...new Map(cases.map((of) => [of.id, of])).values()];
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// No overflow, no violations; and a picture for people.
export async function inspect(page, name, screenshots) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
  if (screenshots !== undefined) await page.screenshot({path: `${screenshots}/${name.replaceAll(/[ ,/]+/g, '-')}.png`});
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
  assert.ok(found.passes.length > 5, `axe looked at ${name}`);
  assert.deepEqual(found.violations.map((of) => `${of.id}: ${of.nodes[0].html.slice(0, 160)} ${of.nodes[0].failureSummary}`), [], name);
}
