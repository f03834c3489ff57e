// node command_pages.test.mjs WEFT: the pages of weft infer, life, place, replay, colltrace, te, bulk, forecast and scale in Chromium, wide and narrow, light and dark:
// findings first, drawings, choices by keyboard, nothing fetched. Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
if (executablePath === undefined) {
  console.log('SKIPPED: pages of commands: Chromium is not installed (apt-get install chromium)');
  process.exit(77);
}
const [weft] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'weft-pages-'));
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
writeFileSync(join(scratch, 'life.yaml'), `
life:
  {hosts: 100, spares: 4, runs: 50, checkpoint: {every: 15 min, stall: 15 s}, detect: {crash: 30 s}, localise: 2 min, restart: 4 min,
   repair: {takes: 24 h}, causes: [{name: "<b>optics</b>", group: host, per_1000_host_days: 20}],
   what_if: [{name: no spares, spares: 0}], surface: {goodput: 0.9, stall: [5 s, 15 s], every: [15 min]}}
`);
writeFileSync(join(scratch, 'pods.yaml'), 'fabric: {generator: three_tier, pods: 4, racks: 8, oversubscription: 7}\n');
execFileSync(weft, ['life', 'life.yaml', '--page', 'life.html'], {cwd: scratch});
execFileSync(weft, ['place', '--fabric', 'pods.yaml', '--gpus', '192', '--model', 'llama3-8b', '--order', 'tp=8,pp=4,dp=6', '--batch', '96',
                    '--busy', 'other=rack:[0-3]', '--exclude', 'rack:9', '--page', 'place.html'], {cwd: scratch});

writeFileSync(join(scratch, 'run.yaml'), `
fabric: {generator: ai_zone, racks: 40, hosts_per_rack: 1, spines: 4}
faults: [{kind: link_down, link: "rtsw:0--ctsw:1", at: 1 ms}]
jobs: [{name: x, collective: all_reduce, algorithm: ring, gpus: 320, bytes: 64 MiB}]
compare: {one: {}, spray: {routing: {scheme: spray}}}
`);
execFileSync(weft, ['run', 'run.yaml', '--out', 'run', '--quiet'], {cwd: scratch});

writeFileSync(join(scratch, 'replay.yaml'), `
fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2}
jobs: [{name: "<b>x</b>", collective: all_reduce, algorithm: ring, gpus: 16, bytes: 64 MiB}]
compare: {one: {}, spray: {routing: {scheme: spray}}}
`);
writeFileSync(join(scratch, 'day.jsonl'), ['down', 'up', 'down', 'up'].map((way, at) =>
  JSON.stringify({t: `2026-01-05T0${at}:00:00Z`, source: 'syslog', kind: `link_${way}`, entity: 'rtsw:0--ctsw:1'})).join('\n'));
execFileSync(weft, ['replay', 'replay.yaml', '--records', 'day.jsonl', '--page', 'replay.html', '--quiet'], {cwd: scratch});
// 16 ranks in tensor groups of 4 and data groups of 4: rank 6 is stuck. Its peers wait in the next operation, and theirs for them.
const entry = (group, seq, at, done) => ({
  collective_seq_id: seq, process_group: [group, group.startsWith('t') ? 'tp' : '<i>dp</i>'], profiling_name: 'nccl:all_reduce', input_sizes: [[4]],
  input_dtypes: ['Float'], output_sizes: [[4]], output_dtypes: ['Float'], state: done ? 'completed' : 'started', record_id: at, is_p2p: false,
  time_created_ns: 1798e15 + at * 1e6, time_discovered_started_ns: 1798e15 + at * 1e6, time_discovered_completed_ns: done ? 1798e15 + at * 1e6 + 8e5 : 0,
});
const groups = Object.fromEntries([0, 1, 2, 3].flatMap((at) => [[`t${at}`, {desc: 'tp', ranks: JSON.stringify([0, 1, 2, 3].map((k) => 4 * at + k))}],
                                                                [`d${at}`, {desc: '<i>dp</i>', ranks: JSON.stringify([0, 1, 2, 3].map((k) => 4 * k + at))}]]));
mkdirSync(join(scratch, 'job'));
for (let rank = 0; rank < 16; rank += 1) {
  const [t, d] = [`t${Math.floor(rank / 4)}`, `d${rank % 4}`];
  const entries = [entry(t, 1, 0, true), entry(d, 1, 1, true)];
  if (rank !== 6) entries.push(entry(t, 2, 2, t !== 't1'));
  if (t !== 't1') entries.push(entry(d, 2, 9, false));
  writeFileSync(join(scratch, 'job', `rank_${rank}`), JSON.stringify({entries, pg_config: groups, version: '2.9'}));
}
spawnSync(weft, ['colltrace', 'job', '--page', 'colltrace.html'], {cwd: scratch});

writeFileSync(join(scratch, 'wan.csv'), 'src,dst,capacity\n<b>a</b>,b,10 Gbps\nb,c,10 Gbps\nc,<b>a</b>,5 Gbps\n');
writeFileSync(join(scratch, 'sites.csv'), 'id,lon,lat\n<b>a</b>,0,0\nb,10,0\nc,10,8\n');
writeFileSync(join(scratch, 'demands.csv'), 'src,dst,rate,class\n<b>a</b>,b,4 Gbps,1\n<b>a</b>,c,9 Gbps,2\n');
writeFileSync(join(scratch, 'transfers.csv'), 'id,src,dst,size,release,deadline\n<i>t</i>,<b>a</b>,c,4 TB,2 h,10 h\nlate,b,c,1 TB,12 h,24 h\n');
const hours = Array.from({length: 240}, (_, h) => [new Date(Date.UTC(2026, 0, 5, h)).toISOString().replace('.000', ''),
                                                  h === 50 ? '' : 1000 + Math.round(400 * Math.sin(h * Math.PI / 12) + (7919 * h) % 97), h % 100 === 7 ? '<i>match</i>' : '']);
writeFileSync(join(scratch, 'series.csv'), `time,value,event\n${hours.map((row) => row.join(',')).join('\n')}\n`);
execFileSync(weft, ['te', 'wan.csv', '--demands', 'demands.csv', '--classes', '--failures', '--sites', 'sites.csv', '--page', 'te.html'], {cwd: scratch});
execFileSync(weft, ['te', 'wan.csv', '--demands', 'demands.csv', '--objective', 'mlu', '--failures', '--page', 'mlu.html'], {cwd: scratch});
execFileSync(weft, ['bulk', 'wan.csv', '--transfers', 'transfers.csv', '--sites', 'sites.csv', '--page', 'bulk.html'], {cwd: scratch});
writeFileSync(join(scratch, 'none.csv'), 'id,src,dst,size\n');
execFileSync(weft, ['bulk', 'wan.csv', '--transfers', 'none.csv', '--page', 'none.html'], {cwd: scratch});
execFileSync(weft, ['forecast', 'series.csv', '--horizon', '24', '--page', 'forecast.html'], {cwd: scratch});
execFileSync(weft, ['scale', 'series.csv', '--capacity', '40', '--start-up', '1 h', '--page', 'scale.html'], {cwd: scratch});

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
    assert.match(await page.locator('.findings').innerText(), /^one: TTFT p99 .* on 1 GPU\. MISSED by .*all others/);
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
    await page.goto(pathToFileURL(join(scratch, 'run', 'report.html')).href);
    await page.waitForSelector('.fabric-map svg');
    // 4 spines; 40 racks and hosts in runs of two, each with a bundle to every spine or to its rack.
    assert.equal(await page.locator('.fabric-map .node').count(), 4 + 20 + 20);
    assert.equal(await page.locator('.fabric-map .cables').count(), 4 * 20 + 20);
    assert.match(await page.locator('.fabric-map .cables.down title').textContent(),
                 /^ctsw:1 to rack:0 to rack:1: 2 cables, load \d.* at most, .* in the mean, \d.* over the run, 1 down$/);
    assert.match(await page.locator('.fabric-map + .legend').innerText(), /in the busiest interval, \d.* to \d.*: 0/);
    assert.ok((await page.locator('.maps .ramp').first().boundingBox()).width > 50);
    assert.equal(await page.locator('.fabric-map + .legend + .scroll tbody tr').count(), 5);
    const inks = await page.locator('.fabric-map .cables:not(.down)').evaluateAll((lines) => new Set(lines.map((line) => line.getAttribute('stroke'))).size);
    assert.ok(inks > 1);  // ECMP loads bundles unequally
    const drawing = await page.locator('.fabric-map svg').boundingBox();
    assert.ok(drawing.width <= width && drawing.width > 0.8 * Math.min(width - 60, 1100));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.goto(pathToFileURL(join(scratch, 'curve.html')).href);
    await page.waitForSelector('#curve canvas');
    assert.ok(await drawn(page, 'curve') > 5);
    assert.ok(await page.locator('#rates tbody tr').count() >= 24);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.goto(pathToFileURL(join(scratch, 'life.html')).href);
    assert.match(await page.locator('.findings').innerText(), /^Goodput \d+\.\d+ % ±/);
    const widths = await page.locator('.waterfall .bar').evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect()).map(({left, right}) => [left, right]));
    assert.ok(widths.length >= 5);
    // Each begins where the one above ends, down to goodput.
    for (let i = 1; i < widths.length; i += 1) assert.ok(Math.abs(widths[i][1] - widths[i - 1][0]) < 1.5);
    assert.equal(await page.locator('#what-ifs .bar-row').count(), 1);
    assert.equal(await page.locator('#surface tbody tr').count(), 2);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.goto(pathToFileURL(join(scratch, 'place.html')).href);
    assert.equal(await page.locator('#ranks .squares i').count(), 24);
    assert.equal(await page.locator('#fabric .squares i').count(), 64);
    assert.match(await page.locator('#fabric .legend').innerText(), /other: 8.*excluded: 2.*the job: 24.*free: 30/s);
    assert.match(await page.locator('#ranks .squares i').first().getAttribute('title'), /^ranks 0-7: host\d+, pod:\d$/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.goto(pathToFileURL(join(scratch, 'replay.html')).href);
    await page.waitForSelector('#steps-0 canvas');
    assert.match(await page.locator('.findings').innerText(), /(one|spray), <b>x<\/b>: \d+\.\d minutes lost; steps of/);
    assert.ok(await drawn(page, 'steps-0') > 5);
    assert.equal(await page.locator('#cost tbody tr').count(), 2);
    assert.deepEqual(await page.locator('#intervals tbody td:nth-child(3)').allInnerTexts(),
                     ['link_down rtsw:0--ctsw:1', '–', 'link_down rtsw:0--ctsw:1']);
    await page.goto(pathToFileURL(join(scratch, 'colltrace.html')).href);
    assert.match(await page.locator('.findings').innerText(), /^Rank 6: stuck: /);
    assert.equal(await page.locator('#waits .squares i').count(), 2 * 16);
    assert.equal(await page.locator('#waits .squares i.named').count(), 2);
    assert.match(await page.locator('#waits .squares i').nth(4).getAttribute('title'), /^rank 4: 7\.000 ms$/);
    await page.waitForSelector('#graph svg .node');
    assert.deepEqual((await page.locator('#graph .node').evaluateAll((nodes) => nodes.map((node) => [...node.querySelectorAll('text')].map((line) => line.textContent).join(' | ')))).sort(),
                     ['<i>dp</i> | 1 group, 3 ranks', '<i>dp</i> | 3 groups, 9 ranks', 'rank 6: stuck | waited for in 2 groups', 'tp | 1 group, 3 ranks']);
    assert.equal(await page.locator('#graph .wait').count(), 3);
    const boxes = await page.locator('#graph .node rect').evaluateAll((nodes) => nodes.map((node) => node.getBoundingClientRect()).map(({left, right, top, bottom}) => ({left, right, top, bottom})));
    for (const [at, a] of boxes.entries())
      for (const b of boxes.slice(at + 1)) assert.ok(a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top);
    assert.equal(await page.locator('#timeline .bar-row[role=listitem]').count(), 4);
    assert.equal(await page.locator('#timeline .bar.open').count(), 3);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const narrow = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    await page.goto(pathToFileURL(join(scratch, 'te.html')).href);
    assert.match(await page.locator('.findings').innerText(), /^Class 1: 4 Gbps sent of 4 Gbps.*Class 2: 9 Gbps sent of 9 Gbps.*Busiest: .*Worst failure: .* sent\.$/s);
    assert.equal(await page.locator('#map .wan-link').count(), 6);
    assert.equal(await page.locator('#map .node').count(), 3);
    // East is to the right and north is up.
    const [a, b, c] = await page.locator('#map circle').evaluateAll((nodes) => nodes.map((node) => [Number(node.getAttribute('cx')), Number(node.getAttribute('cy'))]));
    assert.ok(b[0] > a[0] && b[1] === a[1] && c[0] === b[0] && c[1] < b[1]);
    assert.equal(await page.locator('#links tbody tr').count(), 6);
    assert.equal(await page.locator('#failures .bar-row').count(), 3);
    assert.ok(await narrow());
    await page.goto(pathToFileURL(join(scratch, 'mlu.html')).href);
    assert.match(await page.locator('.findings').innerText(), /^Worst link at/);
    assert.match(await page.locator('#map .legend').innerText(), /--sites adds them/);
    await page.goto(pathToFileURL(join(scratch, 'bulk.html')).href);
    await page.waitForSelector('#day canvas');
    assert.match(await page.locator('.findings').innerText(), /Every transfer meets its deadline/);
    assert.ok(await drawn(page, 'transfers') > 3);
    assert.ok(await drawn(page, 'use') > 3);
    await page.locator('#transfers canvas').focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await page.locator('#transfers .tooltip').innerText(), /^<i>t<\/i>\n0 h: –$/);
    await page.getByLabel('Link', {exact: true}).focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.locator('#list tbody tr').count(), 2);
    assert.ok(await narrow());
    await page.goto(pathToFileURL(join(scratch, 'none.html')).href);
    assert.match(await page.locator('.lead').first().innerText(), /^0 transfers over 3 sites/);
    await page.goto(pathToFileURL(join(scratch, 'forecast.html')).href);
    await page.waitForSelector('#series canvas');
    assert.ok(await drawn(page, 'series') > 5);
    assert.match(await page.locator('.findings').innerText(), /^Highest on 2026-01-15 .*1 gaps filled/s);
    assert.equal(await page.locator('#values tbody tr').count(), 24);
    assert.ok(await narrow());
    await page.goto(pathToFileURL(join(scratch, 'scale.html')).href);
    await page.waitForSelector('#curves canvas');
    assert.match(await page.locator('.findings').innerText(), /^At 0\.5\d* % violated: reactive \(HPA\) /);
    assert.equal(await page.locator('#equal tbody tr').count(), 3);
    assert.ok(await drawn(page, 'days-0') > 5);
    assert.ok(await narrow());
    assert.deepEqual(problems, []);
    await context.close();
  }
  console.log('ok');
} finally {
  await browser.close();
  rmSync(scratch, {recursive: true});
}
