// node sweep_page.test.mjs WEFT: a priced sweep's page in Chromium, wide and narrow, light and dark:
// findings first, curves and the Pareto front drawn, choices by keyboard, nothing fetched.
// Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
if (executablePath === undefined) {
  console.log('SKIPPED: sweep page: Chromium is not installed (apt-get install chromium)');
  process.exit(77);
}
const [weft, prices] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'weft-sweep-'));
writeFileSync(join(scratch, 's.yaml'), `
fabric: {generator: ai_zone, racks: 4}
jobs:
  - {name: reduce, collective: all_reduce, gpus: 64, bytes: 64 MiB}
compare: {ecmp: {}, "<b>spray</b>": {routing: {scheme: spray}}}
sweep: {fabric.spines: [4, 8, 16], jobs.0.bytes: [1 MiB, 64 MiB]}
`);
execFileSync(weft, ['sweep', 's.yaml', '--prices', prices, '--out', 'out', '--quiet'], {cwd: scratch});

const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']});
try {
  for (const [width, colorScheme] of [[1280, 'light'], [400, 'dark']]) {
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme});
    await context.setOffline(true);
    const page = await context.newPage();
    const problems = [];
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(pathToFileURL(join(scratch, 'out/sweep.html')).href);
    await page.waitForSelector('#pareto canvas');
    assert.match(await page.locator('.findings').innerText(), /^reduce, jobs\.0\.bytes 1 MiB: fastest with fabric\.spines \d+/);
    assert.match(await page.locator('.findings').innerText(), /<b>spray<\/b>.*Most iterations per cost with/s);
    assert.equal(await page.locator('#rows tbody tr').count(), 12);
    assert.equal(await page.locator('#curves .legend span').count(), 4);  // 2 sizes x 2 variants
    const drawn = () => page.locator('#curves canvas').evaluate((node) => {
      const {data} = node.getContext('2d').getImageData(0, 0, node.width, node.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(await drawn() > 5);
    await page.getByLabel('Over', {exact: true}).focus();
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.querySelector('#curves .plot')?.ariaLabel === 'Time (ms) over jobs.0.bytes, 6 lines');
    assert.ok(await drawn() > 5);
    await page.locator('#curves .u-over').hover();
    assert.match(await page.locator('#curves .tooltip').innerText(), /jobs\.0\.bytes: \d+ MiB\nfabric\.spines/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.deepEqual(problems, []);
    await context.close();
  }
  console.log('ok');
} finally {
  await browser.close();
  rmSync(scratch, {recursive: true});
}
