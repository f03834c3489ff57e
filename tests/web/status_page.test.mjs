// node status_page.test.mjs WEFT [SCREENSHOT]: the plain page of a running service in Chromium, with
// hundreds of broken cables and repairs under way, against what its API says of them.
// Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {all, openBrowser, openCases, until as pageUntil} from './page_check.mjs';

const browser = await openBrowser('status page');
const [, , weft, screenshot] = process.argv;
const racks = 20;
const spines = 14;  // 280 cables: more cases than the page has rows
const scratch = mkdtempSync(join(tmpdir(), 'weft-page-'));
writeFileSync(join(scratch, 'zone.yaml'),
  `fabric: {generator: ai_zone, racks: ${racks}, hosts_per_rack: 2, gpus_per_host: 1, ` +
  `spines: ${spines}}\n`);
// Cases within seconds instead of half a minute.
writeFileSync(join(scratch, 'serve.yaml'),
  'rules: {timing: {lateness: 1 s}}\npolicy: {defaults: {forecast: none}}\n');

const service = spawn(weft, ['serve', '--fabric', 'zone.yaml', '--config', 'serve.yaml',
                             '--listen', '127.0.0.1:0'], {cwd: scratch});
let log = '';
service.stderr.on('data', (text) => { log += text; });

const until = (what, condition) => pageUntil(what, condition, () => log);

async function break_cables(base) {
  const lines = [];
  const start = Date.now();
  for (let cable = 0; cable < racks * spines; ++cable)
    for (let i = 0; i < 4; ++i)
      lines.push(JSON.stringify({
        id: `${cable}.${i}`, t: `${(BigInt(start) - 100n * BigInt(i)) * 1000000n}`,
        source: 'syslog', kind: 'rx_power',
        entity: `rtsw:${cable % racks}->ctsw:${Math.floor(cable / racks)}`}));
  const reply = await fetch(`${base}/v1/records`, {method: 'POST', body: lines.join('\n') + '\n',
    headers: {'Content-Type': 'application/x-ndjson'}});
  assert.equal(reply.status, 200, await reply.text());
}

// What the page shows, as a reader sees it.
const shown = (page) => page.evaluate(() => ({
  heading: document.querySelector('h2').textContent,
  rows: [...document.querySelectorAll('tr')].slice(1).map((row) =>
    [...row.cells].map((cell) => cell.textContent.trim())),
}));

async function check(base, page) {
  const wanted = racks * spines;
  await until('the cases', async () => (await openCases(base)).length === wanted);
  await page.goto(`${base}/status`);
  // What is published early may still change: the last of four records come, a case gets another
  // id. Page and API are compared once all is settled.
  const stages = new Map();
  // Stages move on between two looks; most have the same one in both, sooner or later.
  const alike = (now) => now.rows.filter(([, , , , , repair, id]) => repair === stages.get(id));
  const seen = await until('a page that shows all', async () => {
    const repairs = await all(base, '/v1/repairs?');
    for (const repair of repairs) for (const {id} of repair.cases) stages.set(id, repair.stage);
    const now = await shown(page);
    return now.rows.length > 0 && now.heading.startsWith(`${wanted} open`) &&
      now.rows.every((row) => row[4] === '4' && stages.has(row[6])) && alike(now).length > now.rows.length / 2 && now;
  });
  assert.equal(seen.heading, `${wanted} open, the ${seen.rows.length} most recently changed are shown`);
  assert.equal(seen.rows.length, 200);
  for (const row of seen.rows) {
    const [, cause, root, state, , repair] = row;
    assert.equal(cause, 'optic', row);
    assert.match(root, /^rtsw:\d+--ctsw:\d+$/);
    assert.ok(['open', 'provisional'].includes(state));
    assert.notEqual(repair, 'none');
  }
  console.log(`${seen.heading}; repairs shown: ` +
    [...new Set(seen.rows.map((row) => row[5]))].join(', '));
}

try {
  const [, base] = await until('it listens', () => log.match(/listening at (\S+)/))
    .then(([, address]) => ['', `http://${address}`]);
  await break_cables(base);
  const page = await (await browser.newContext({viewport: {width: 1280, height: 900}})).newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await check(base, page);
  if (screenshot !== undefined) await page.screenshot({path: screenshot});
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
  service.kill('SIGTERM');
  await new Promise((done) => service.once('close', done));
  rmSync(scratch, {recursive: true});
}
