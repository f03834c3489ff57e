// node report.test.mjs DEMO_REPORT: opens reports in Chromium without a network and looks at what a
// reader would: no errors, nothing fetched, charts drawn, tooltips, tabs by keyboard, safe texts.
// Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
if (executablePath === undefined) {
  console.log('SKIPPED: report page: Chromium is not installed (apt-get install chromium)');
  process.exit(77);
}

const demo = process.argv[2];
const scratch = mkdtempSync(join(tmpdir(), 'weft-report-'));
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
         '--disable-background-networking', '--disable-component-update'],
});

async function open(kind, options = {}) {
  const directory = join(scratch, kind);
  execFileSync(demo, [kind, directory]);
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, ...options});
  await context.setOffline(true);
  const page = await context.newPage();
  const problems = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') && !request.url().startsWith('data:')) {
      problems.push(`request to ${request.url()}`);
    }
  });
  await page.goto(pathToFileURL(join(directory, 'report.html')).href);
  await page.waitForSelector('[role=tabpanel] canvas');
  return {page, problems};
}

// Number of colours on a canvas; one that nothing was drawn on has a single one.
const colours = (canvas) => canvas.evaluate((node) => {
  const {data} = node.getContext('2d').getImageData(0, 0, node.width, node.height);
  return new Set(new Uint32Array(data.buffer)).size;
});

async function hoverMap(page) {
  const canvas = page.locator('.heat canvas').first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  const tip = page.locator('.heat .tooltip').first();
  await tip.waitFor({state: 'visible'});
  return tip.innerText();
}

const cases = {
  async 'charts are drawn, with nothing fetched and no complaint'() {
    const {page, problems} = await open('zone');
    const charts = await page.locator('canvas').all();
    assert.equal(charts.length, 4 + 2 + 1);  // tiers, maps, completion
    for (const chart of charts) assert.ok(await colours(chart) > 5);
    assert.equal(await page.locator('.overview tbody tr').count(), 6);
    assert.equal(await page.locator('#bandwidth .panel').count(), 4);
    const widths = await page.locator('#bandwidth .bar').evaluateAll(
      (bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    assert.equal(widths.length, 6 * 4 - 1);  // one job never finished
    assert.ok(Math.min(...widths) > 50);
    const values = page.locator('#bandwidth .bar-row .value');
    assert.equal(await values.filter({hasText: 'unfinished'}).count(), 1);
    assert.deepEqual(await page.locator('#slowdown td.unfinished').allInnerTexts(), [
      'unfinished at 4.200 ms: iteration 1 of 4: gpu:0 has no live path to gpu:64']);
    assert.equal(await page.locator('.warnings li').count(), 1);
    assert.deepEqual(problems, []);
  },

  async 'bars never pass the roofline and are drawn to scale'() {
    const {page} = await open('zone');
    const panels = await page.locator('#bandwidth .panel').evaluateAll((all) => all.map((panel) =>
      [...panel.querySelectorAll('.bar-row[data-variant]')]
        .filter((row) => row.querySelector('.bar')).map((row) => ({
          value: Number(row.querySelector('.value').textContent),
          bar: row.querySelector('.bar').getBoundingClientRect().width,
          roofline: row.querySelector('.roofline').getBoundingClientRect().left + 1 -
                    row.querySelector('.bar').getBoundingClientRect().left,
        }))));
    for (const rows of panels) {
      const scale = rows[0].bar / rows[0].value;
      for (const row of rows) {
        assert.ok(row.bar <= row.roofline + 1);
        assert.ok(Math.abs(row.bar - row.value * scale) < 1.5);
      }
    }
  },

  async 'tooltips name the link and its load'() {
    const {page, problems} = await open('zone');
    assert.match(await hoverMap(page), /^rtsw:\d+ → ctsw:\d+\nload \d+\.\d %$/);
    const chart = page.locator('.plot .u-over').first();
    await chart.scrollIntoViewIfNeeded();
    await chart.hover();
    const tip = await page.locator('.plot .tooltip').first().innerText();
    assert.match(tip, /load \d+–\d+ %\n.*% of links/);
    assert.deepEqual(problems, []);
  },

  async 'arrow keys move between variants and between links'() {
    const {page} = await open('zone');
    const selected = page.locator('[role=tab][aria-selected=true]');
    await selected.focus();
    const seen = [];
    for (const key of ['ArrowRight', 'End', 'ArrowRight', 'ArrowLeft', 'Home']) {
      await page.keyboard.press(key);
      seen.push(await selected.innerText());
    }
    assert.deepEqual(seen, ['e_ecmp 4', 'spray', 'ecmp', 'spray', 'ecmp']);
    assert.equal(await selected.evaluate((tab) => tab === document.activeElement), true);
    await page.locator('.heat canvas').first().focus();
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
    assert.match(await page.locator('.heat .tooltip').first().innerText(), /^rtsw:1 → ctsw:1\n/);
  },

  async 'the page fits a narrow window and follows the colour scheme'() {
    const {page, problems} =
      await open('zone', {viewport: {width: 380, height: 800}, colorScheme: 'dark'});
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await back();
    await page.emulateMedia({colorScheme: 'light'});
    assert.notEqual(await back(), dark);
    assert.deepEqual(problems, []);
  },

  async 'texts of a scenario stay text'() {
    const {page, problems} = await open('hostile');
    assert.match(await page.title(), /<script>/);
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.locator('h1').innerText(),
                 "</title></script><script>document.title='owned'</script><!--");
    const tabs = await page.locator('[role=tab]').allInnerTexts();
    assert.deepEqual(tabs.slice(1), ['__proto__', '2', '1']);
    for (const tab of await page.locator('[role=tab]').all()) await tab.click();
    await hoverMap(page);
    assert.deepEqual(problems, []);
  },

  async 'large maps are merged and say so'() {
    const {page, problems} = await open('large');
    const tip = await hoverMap(page);
    assert.match(tip, /rtsw:\d+ … rtsw:\d+ → ctsw:\d+ … ctsw:\d+\n.*hottest/);
    assert.match(await page.locator('#variants').innerText(), /stands for 4 × 2 switches/);
    assert.deepEqual(problems, []);
  },

  async 'the tabs of many variants scroll to the selected one'() {
    const {page, problems} = await open('many', {viewport: {width: 700, height: 900}});
    await page.locator('[role=tab][aria-selected=true]').focus();
    await page.keyboard.press('End');
    const last = await page.locator('[role=tab]').last().boundingBox();
    assert.ok(last.x >= 0 && last.x + last.width <= 700);
    assert.deepEqual(problems, []);
  },

  async 'training steps are drawn as stacked bars, to scale'() {
    const {page, problems} = await open('training');
    assert.equal(await page.locator('#training tbody tr').count(), 5);
    assert.equal(await page.locator('#bandwidth, #slowdown').count(), 0);
    const rows = await page.locator('#training .panel.wide .bar-row[data-variant]').evaluateAll(
      (all) => all.map((row) => ({
        seconds: Number.parseFloat(row.querySelector('.value').textContent),
        left: row.querySelector('.track').getBoundingClientRect().left,
        bars: [...row.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect())
          .map(({left, right}) => ({left, right})),
      })));
    assert.equal(rows.length, 5);
    const scale = (rows[0].bars.at(-1).right - rows[0].left) / rows[0].seconds;
    for (const {seconds, left, bars} of rows) {
      assert.equal(bars.length, 5);  // compute, TP, PP, DP, idle
      bars.slice(1).forEach((bar, at) => assert.ok(Math.abs(bar.left - bars[at].right) < 0.1));
      assert.ok(Math.abs(bars.at(-1).right - left - seconds * scale) < 3);
    }
    assert.equal(await page.locator('#training .bar.part-dp').first().getAttribute('title'),
                 'exposed DP: 750.0 ms, 11.2 % of the step');
    assert.deepEqual(problems, []);
  },

  async 'the timeline names what is under the pointer, and zooms'() {
    const {page, problems} = await open('training');
    const canvas = page.locator('.timeline canvas');
    assert.ok(await colours(canvas) > 8);
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    const tip = async (x, y) => {
      await page.mouse.move(box.x + x, box.y + y);
      return page.locator('.timeline .tooltip').innerText();
    };
    assert.match(await tip(box.width * 0.2, 6), /^pp 0\nforward \d+\.\d\n[\d.]+ ms from [\d.]+ /);
    assert.match(await tip(box.width - 60, 16), /^pp 0\nDP: reduce_scatter gradients\n/);
    const whole = page.getByRole('button', {name: 'Whole step'});
    assert.equal(await whole.isDisabled(), true);
    await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 50, {steps: 3});
    await page.mouse.up();
    assert.equal(await whole.isDisabled(), false);
    await canvas.focus();
    for (const key of ['+', 'ArrowRight', '-', 'Home']) await page.keyboard.press(key);
    assert.equal(await whole.isDisabled(), true);
    assert.deepEqual(problems, []);
  },

  async 'steps list bytes, waits and the flows of hot links'() {
    const {page, problems} = await open('training');
    await page.getByRole('tab', {name: 'one GPU 1.3x slow'}).click();
    const tables = await page.locator('.step table').evaluateAll((all) =>
      all.map((table) => [table.caption.textContent, table.tBodies[0].rows.length]));
    assert.deepEqual(tables, [['Bytes of a step by distance', 4],
                              ['Ranks that others waited for', 2], ['Hottest links', 10]]);
    const text = await page.locator('.step').innerText();
    assert.match(text, /rank 148 \(gpu:148\)\s+DP\s+4030/);
    assert.match(text, /llama3 DP, [\d.]+ GiB, e\.g\. gpu:0 → gpu:2056/);
    assert.deepEqual(problems, []);
  },

  async 'collectives and training jobs share a page'() {
    const {page, problems} = await open('mixed');
    assert.equal(await page.locator('#bandwidth .panel').count(), 4);
    assert.equal(await page.locator('#training .panel.wide .bar-row .value')
      .filter({hasText: 'not run'}).count(), 3);
    assert.equal(await page.locator('#training .panel.wide .bar-row .value')
      .filter({hasText: 'unfinished'}).count(), 1);
    const row = page.locator('#training tbody tr').filter({hasText: 'unfinished'});
    assert.equal(await row.locator('td').allInnerTexts().then((texts) => texts.join('|')),
                 'unfinished at 9.500 s: step 2 of 3: gpu:0 has no live path to gpu:8');
    for (const tab of await page.locator('[role=tab]').all()) await tab.click();
    assert.deepEqual(problems, []);
  },

  async 'training steps fit a narrow window without touching labels'() {
    const {page, problems} = await open('training', {viewport: {width: 400, height: 800}});
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const overlaps = await page.locator('#training .ticks').evaluateAll((all) => all.map((axis) => {
      const boxes = [...axis.querySelectorAll('span')].map((span) => span.getBoundingClientRect())
        .filter((box) => box.width > 0);
      return boxes.slice(1).filter((box, at) => box.left < boxes[at].right + 2).length;
    }));
    assert.deepEqual(overlaps, [0, 0, 0]);
    // Spans of a pixel or two side by side would be hatching: no row of a lane may have many.
    const slivers = await page.locator('.timeline canvas').evaluate((node) => {
      const rows = new Uint32Array(node.getContext('2d').getImageData(0, 0, node.width, 14).data.buffer);
      let most = 0;
      for (let y = 1; y < 14; y += 1) {
        const row = rows.subarray(y * node.width, (y + 1) * node.width);
        let [count, length] = [0, 1];
        for (let x = 1; x < row.length; x += 1) {
          if (row[x] === row[x - 1]) {
            length += 1;
          } else {
            count += length < 3 ? 1 : 0;
            length = 1;
          }
        }
        most = Math.max(most, count);
      }
      return most;
    });
    assert.ok(slivers < 40, `${slivers} slivers in a row of the timeline`);
    assert.deepEqual(problems, []);
  },

  async 'one variant is compared with nothing'() {
    const {page, problems} = await open('single');
    assert.equal(await page.locator('.key.first').count(), 0);
    assert.deepEqual(problems, []);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
await browser.close();
rmSync(scratch, {recursive: true});
process.exit(failed > 0 ? 1 : 0);
