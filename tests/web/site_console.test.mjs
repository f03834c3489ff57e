// node site_console.test.mjs WEFT world|lab [SCREENSHOTS]: every page of the console at 1,280 and 400 px, on what a
// simulated network makes of faults, or on real packets: `weft up --lab` with FRRouting, real syslog and probes.
// Accessibility by axe-core. Exit status 77 means skipped.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {inspect, openBrowser, skip, until} from './page_check.mjs';

const [, , weft, mode, screenshots] = process.argv;
const test = `console of a ${mode}`;
const scratch = mkdtempSync(join(tmpdir(), 'weft-site-console-'));
const lab = `c${process.pid % 1000000}`;

// A lossy cable, which is drained; two cables of a rack down, which together leave it too few uplinks; a spine.
writeFileSync(join(scratch, 'world.yaml'), `fabric: {generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 4}
routing: {scheme: e_ecmp, qps: 4}
jobs: [{name: llama, collective: all_reduce, gpus: 16, bytes: 256 MiB}]
faults:
  - {kind: link_lossy, link: "rtsw:1--ctsw:2", loss: 2 %, at: 10 s}
  - {kind: link_down, link: "rtsw:3--ctsw:0", at: 20 s}
  - {kind: link_down, link: "rtsw:3--ctsw:1", at: 40 s}
  - {kind: switch_down, switch: "ctsw:3", at: 60 s}
`);
const how = {
  world: {command: ['serve', '--world', 'world.yaml', '--listen', '127.0.0.1:0', '--speed', '20'],
          listens: /listening at (\S+)/, kinds: ['cable', 'switch', 'capacity']},
  lab: {command: ['up', '--lab', 'site', '--name', lab], listens: /service ready at http:\/\/([^,\s]+)/, kinds: ['cable']},
}[mode];
if (mode === 'lab' && process.getuid() !== 0) skip(test, 'needs root, for network namespaces');
if (mode === 'lab' && !/lab with FRRouting: yes/.test(spawnSync(weft, ['lab', 'doctor'], {encoding: 'utf8'}).stdout))
  skip(test, 'no lab with FRRouting here (weft lab doctor)');

const browser = await openBrowser(test);
const running = spawn(weft, how.command, {cwd: scratch});
let log = '';
for (const stream of [running.stdout, running.stderr]) stream.on('data', (text) => { log += text; });
const get = async (base, path) => (await fetch(base + path)).json();
// Twenty seconds of a simulated network are one; a lab has FRRouting to wait for.
const patiently = async (what, condition) => {
  for (let i = 0; i < 4; ++i)
    try {
      return await until(what, condition, () => log);
    } catch (error) {
      if (i === 3) throw error;
    }
};

async function visit(page, base, hash) {
  await page.goto(`${base}/#/${hash}`);
  await until(`page ${hash}`, () => page.evaluate(() => document.querySelector('main h1') !== null &&
    !document.querySelector('main').textContent.includes('Loading')), () => log);
}

async function pages(page, base, name) {
  const open = (await get(base, '/v1/cases?state=open&limit=1000')).items;
  await visit(page, base, 'cases');
  await until('all open cases', async () => {
    const count = (await get(base, '/v1/cases?state=open&limit=1000')).items.length +
                  (await get(base, '/v1/cases?state=provisional&limit=1000')).items.length;
    return await page.locator('.cards tbody tr').count() === count;
  }, () => log);
  await inspect(page, `${mode} cases ${name}`, screenshots);
  // A case of each kind: its root, and the words that devices, probes or the service itself said.
  for (const kind of how.kinds) {
    const {id, cause} = open.find((of) => of.cause.kind === kind);
    await visit(page, base, `case/${id}`);
    await until(`what was said of ${kind}`, () => page.evaluate(() => document.querySelector('#said ~ * tr, #said tbody tr') !== null), () => log);
    assert.equal(await page.textContent('h1'), `${kind} at ${cause.entity}`);
    await inspect(page, `${mode} case ${kind} ${name}`, screenshots);
  }
  for (const [hash, ready] of [['fabric', 'canvas'], ['probes', 'main h1'], ['minutes', 'main h1'],
                               ['feeds', '#speakers-title'], ['capacity', '#kill-title'], ['jobs', 'main h1']]) {
    await visit(page, base, hash);
    await until(`${hash} with its data`, () => page.evaluate((what) => document.querySelector(what) !== null, ready), () => log);
    await inspect(page, `${mode} ${hash} ${name}`, screenshots);
  }
}

try {
  const base = await patiently('it listens', () => how.listens.exec(log)).then(([, address]) => `http://${address}`);
  for (const kind of how.kinds)
    await patiently(`a case of kind ${kind}`, async () =>
      (await get(base, '/v1/cases?state=open&limit=1000')).items.some((of) => of.cause.kind === kind));
  const problems = [];
  for (const [width, colorScheme] of [[1280, 'light'], [400, 'dark']]) {
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme});
    const page = await context.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (said) => { if (said.type() === 'error') problems.push(said.text()); });
    await pages(page, base, `${width}`);
    await context.close();
  }
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
  running.kill('SIGTERM');
  for (let i = 0; i < 600 && running.exitCode === null && running.signalCode === null; ++i) await sleep(50);
  running.kill('SIGKILL');
  if (mode === 'lab') spawnSync(weft, ['lab', 'down', '--name', lab]);
  rmSync(scratch, {recursive: true});
}
