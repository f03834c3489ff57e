// node infer_page.test.mjs WEFT: the page of a service and that of its goodput curve in Chromium, wide and narrow, light
// and dark: findings, distributions by keyboard, nothing fetched. Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
if (executablePath === undefined) {
  console.log('SKIPPED: page of a service: Chromium is not installed (apt-get install chromium)');
  process.exit(77);
}
const [weft] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'weft-infer-'));
writeFileSync(join(scratch, 's.yaml'), `
fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 1}
inference:
  model: llama3-8b
  gpu: h100
  gpu_hour: 2
  requests: {poisson: [{class: chat, rate: 5, count: 100, output: 50}, {class: "<i>batch</i>", rate: 1, input: 4000}]}
  slo: [{class: chat, ttft: 100 ms}, {ttft: 10 ms, tpot: 1 s}]
jobs: [{name: beside, collective: all_reduce, bytes: 1 GiB, gpus: 2}]
compare: {one: {}, two: {inference: {replicas: 2}}}
`);
execFileSync(weft, ['infer', 's.yaml', '--page', 'run.html', '--quiet'], {cwd: scratch});
execFileSync(weft, ['infer', 's.yaml', '--curve', '--page', 'curve.html', '--quiet'], {cwd: scratch});

const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']});
const drawn = (page, id) => page.locator(`#${id} canvas`).evaluate((node) => {
  const {data} = node.getContext('2d').getImageData(0, 0, node.width, node.height);
  return new Set(new Uint32Array(data.buffer)).size;
});
try {
  for (const [width, colorScheme] of [[1280, 'light'], [400, 'dark']]) {
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme});
    await context.setOffline(true);
    const page = await context.newPage();
    const problems = [];
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(pathToFileURL(join(scratch, 'run.html')).href);
    await page.waitForSelector('#distribution canvas');
    assert.match(await page.locator('.findings').innerText(), /^one: TTFT p99 .* on 1 GPUs\. MISSED by .*all others/);
    assert.equal(await page.locator('#objectives tbody tr').count(), 4);
    assert.equal(await page.locator('#latencies tbody tr').count(), 12);
    assert.equal(await page.locator('#jobs tbody tr').count(), 2);
    assert.ok(await drawn(page, 'distribution') > 5);
    await page.getByLabel('Show', {exact: true}).focus();
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.querySelector('#distribution .plot')?.ariaLabel === 'Distribution of TPOT, 2 lines');
    await page.locator('#distribution .u-over').hover();
    assert.match(await page.locator('#distribution .tooltip').innerText(), /TPOT \(ms\): [\d.]+\none: \d+/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.goto(pathToFileURL(join(scratch, 'curve.html')).href);
    await page.waitForSelector('#curve canvas');
    assert.ok(await drawn(page, 'curve') > 5);
    assert.ok(await page.locator('#rates tbody tr').count() >= 24);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.deepEqual(problems, []);
    await context.close();
  }
  console.log('ok');
} finally {
  await browser.close();
  rmSync(scratch, {recursive: true});
}
