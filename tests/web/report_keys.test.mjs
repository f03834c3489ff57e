// node report_keys.test.mjs WEFT PAGE DOCUMENT: what report.json has, its TypeScript types (in
// the page's folder, checked by its own compiler) and its keys in docs/report.md are the same.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';

const [weft, page, document] = process.argv.slice(2).map((path) => resolve(path));
const scratch = mkdtempSync(join(tmpdir(), 'weft-report-'));

const zone = 'fabric: {generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 8, spines: 2}\n';
const scenarios = {
  // Collectives and training; healthy, and cut off.
  fluid: `${zone}jobs:
  - {name: llama, model: llama3-8b, parallel: {tp: 8, dp: 8}, batch_tokens: 1 Mi}
  - {name: ring, collective: all_reduce, gpus: 16, bytes: 64 MiB}
compare:
  healthy: {}
  cut: {faults: [{kind: switch_down, switch: "ctsw:0", at: 1 ms}, {kind: switch_down, switch: "ctsw:1", at: 1 ms}]}
`,
  packet: `${zone}engine: {name: packet, estimate: 0.5}\njobs: [{name: ring, collective: all_reduce, gpus: 96, bytes: 1 MiB}]\n`,
};

function reportOf(name) {
  const directory = join(scratch, name), file = join(scratch, `${name}.yaml`);
  writeFileSync(file, scenarios[name]);
  try {
    execFileSync(weft, ['run', '--quiet', file, '--out', directory], {encoding: 'utf8', stdio: 'pipe'});
  } catch (error) {
    assert.equal(error.status, 1, error.stderr);  // a job that is cut off does not end
  }
  return JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'));
}

// Objects whose keys are names of things, not of the format.
const byName = new Set(['variants', 'jobs', 'tiers', 'roles', 'exposed_s']);
const dimensions = new Set(['tp', 'cp', 'pp', 'dp', 'ep', 'other']);

function keysIn(value, out = new Set(), own = true) {
  if (Array.isArray(value)) value.forEach((item) => keysIn(item, out));
  else if (value !== null && typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      if (own && !dimensions.has(key)) out.add(key);
      keysIn(inner, out, !byName.has(key));
    }
  }
  return out;
}

try {
  const reports = Object.keys(scenarios).map(reportOf);

  // A literal, so that the compiler refuses missing keys and those that the type does not have.
  const check = reports.map((report, i) => `export const report${i}: Report = ${JSON.stringify(report)};`);
  writeFileSync(join(page, 'src', 'keys_check.ts'), `import type {Report} from './data';\n${check.join('\n')}\n`);
  try {
    execFileSync(join(page, 'node_modules', '.bin', 'tsc'), ['--noEmit'], {cwd: page, encoding: 'utf8'});
  } catch (error) {
    assert.fail(`web/report/src/data.ts does not fit report.json:\n${(error.stdout ?? error.message).slice(0, 2000)}`);
  } finally {
    rmSync(join(page, 'src', 'keys_check.ts'));
  }

  const text = readFileSync(document, 'utf8');
  const section = text.slice(text.indexOf('\n## report.json'), text.indexOf('\n## report.html'));
  const described = new Set([...section.matchAll(/`([^`]+)`/g)].flatMap(([, code]) => code.match(/[A-Za-z_]\w*/g) ?? []));
  const keys = new Set(reports.flatMap((report) => [...keysIn(report)]));
  assert.deepEqual([...keys].filter((key) => !described.has(key)), [], 'keys that docs/report.md does not describe');
  const rows = [...section.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) => cell.match(/[A-Za-z_]\w*/g) ?? []);
  assert.ok(rows.length > 40);
  assert.deepEqual(rows.filter((key) => !keys.has(key)), [], 'keys in docs/report.md that report.json does not have');
} finally {
  rmSync(scratch, {recursive: true});
}
