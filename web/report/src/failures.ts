// Failures in turn: what each run of a role does to a job's time, as dots on one scale.
import {axis, mark} from './bandwidth';
import {el, number, section, table, text, Tooltip} from './dom';
import * as format from './format';

interface Effect {
  job: string;
  stops: number;
  mean_s: number | null;
  median_s: number | null;
  worst_s: number | null;
  worst: string;
}

interface Row {
  role: string;
  of: number;
  unseen_share: number;
  jobs: Effect[];
  runs: {failed: string; seconds: (number | null)[]; stopped?: string}[];
}

export interface Failures {
  scenario: string;
  jobs: string[];
  healthy_s: (number | null)[];
  findings: string[];
  rows: Row[];
}

const ran = (row: Row) => (row.runs.length === row.of ? `all ${format.count(row.of)}`
  : `${format.count(row.runs.length)} of ${format.count(row.of)}`);

// Slowdowns from 1 (healthy) to `max`; runs that stop the job stand in a column of their own.
function dots(row: Row, job: number, healthy: number, max: number, tooltip: Tooltip, host: HTMLElement) {
  const track = el('div', {class: 'track'});
  let stops = 0;
  for (const run of row.runs) {
    const seconds = run.seconds[job] ?? null;
    if (seconds === null) {
      stops += 1;
      continue;
    }
    const dot = mark('dot', Math.max(0, Math.min(1, (seconds / healthy - 1) / (max - 1))) * 100);
    dot.addEventListener('mouseenter', () => {
      const [box, origin] = [dot.getBoundingClientRect(), host.getBoundingClientRect()];
      tooltip.show(box.left - origin.left, box.top - origin.top,
                   [el('div', {}, run.failed), el('div', {}, `${format.seconds(seconds)}, ${(seconds / healthy).toFixed(3)} × healthy`)]);
    });
    dot.addEventListener('mouseleave', () => tooltip.hide());
    track.append(dot);
  }
  const value = stops === 0 ? '' : `${stops} of ${row.runs.length} stop`;
  return el('div', {class: 'bar-row', role: 'listitem'}, el('span', {class: 'name', title: row.role}, row.role), track,
            el('span', {class: stops === 0 ? 'value' : 'value stops'}, value));
}

function chart(failures: Failures, job: number) {
  const healthy = failures.healthy_s[job] ?? 1;
  const worst = Math.max(1.01, ...failures.rows.flatMap((row) => row.runs.map((run) => (run.seconds[job] ?? 0) / healthy)));
  const marks = format.ticks(worst - 1, 5);
  const max = 1 + (marks.at(-1) ?? 0.01);
  const host = el('figure', {class: 'panel wide plot'});
  const tooltip = new Tooltip(host);
  host.append(el('figcaption', {}, el('strong', {}, failures.jobs[job] ?? ''), el('small', {}, `${format.seconds(healthy)} healthy`)),
              el('div', {class: 'stacked wide', role: 'list', 'aria-label': `Slowdown of ${failures.jobs[job]} by what fails`},
                 ...failures.rows.map((row) => dots(row, job, healthy, max, tooltip, host))),
              el('div', {class: 'stacked wide'}, axis('Slower than healthy (%)', marks.map((m) => Number((m * 100).toPrecision(6))), (max - 1) * 100)));
  return host;
}

function effects(failures: Failures, job: number) {
  const columns = [text('Down'), number('Runs'), number('Stop it'), number('Mean'), number('Median'), number('Worst'),
                   number('× healthy'), number('Worse unseen'), text('The worst')];
  const healthy = failures.healthy_s[job] ?? 1;
  const rows = failures.rows.map((row) => {
    const effect = row.jobs[job] as Effect;
    return [row.role, ran(row), effect.stops === 0 ? format.none : String(effect.stops), format.seconds(effect.mean_s),
            format.seconds(effect.median_s), format.seconds(effect.worst_s),
            effect.worst_s === null ? format.none : (effect.worst_s / healthy).toFixed(3),
            row.unseen_share > 0 ? `< ${format.percent(row.unseen_share)}` : format.none, effect.worst];
  });
  return table(failures.jobs[job] ?? '', columns, rows);
}

export function failuresPage(page: HTMLElement, failures: Failures) {
  const jobs = failures.jobs.map((_, job) => job);
  page.append(
    el('header', {}, el('p', {class: 'brand'}, 'weft failures'), el('h1', {}, failures.scenario),
       el('ul', {class: 'findings'}, ...failures.findings.map((line) => el('li', {}, `${line}.`)))),
    section('failures', 'What each failure costs', 'A dot is a run with that failure from the start, when routing has gone round it.',
            ...jobs.map((job) => chart(failures, job))),
    section('numbers', 'Numbers', 'Where a role was sampled: with 95 % confidence, no more than the share under “worse unseen” would be worse than the worst that was run.',
            ...jobs.map((job) => effects(failures, job))));
}
