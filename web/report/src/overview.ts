// Slowdown against the roofline: one row per variant, one column per job.
import {collectiveNames, collectiveOf, variantsOf, type Job, type Report} from './data';
import {el, section} from './dom';
import * as format from './format';

function cell(job: Job | undefined, worst: number, best: number | undefined) {
  if (job === undefined) return el('td', {class: 'ratio'}, 'not run');
  if (job.unfinished !== null) {
    return el('td', {class: 'ratio unfinished'}, format.unfinished(job.unfinished));
  }
  const ratio = job.ratio;
  if (ratio === null) return el('td', {class: 'ratio'}, format.none);
  const bar = el('span', {class: 'bar'});
  const excess = worst >= 1.005 ? (ratio - 1) / (worst - 1) : 0;  // else all read 1.00
  bar.style.width = `${Math.min(Math.max(excess, 0), 1) * 100}%`;
  const fastest = best !== undefined && format.ratio(ratio) === format.ratio(best);
  const number = el(fastest ? 'strong' : 'span', {class: 'value'}, format.ratio(ratio));
  return el('td', {class: 'ratio'}, number, el('span', {class: 'track'}, bar));
}

export function settings(variant: {scheme: string; qps: number; faults: string[]}): string {
  const parts = [variant.scheme, `${variant.qps} QP${variant.qps === 1 ? '' : 's'}`];
  return [...parts, ...variant.faults].join(' · ');
}

// `select` shows a variant in the part of the page that treats one at a time.
export function overview(report: Report, select: (name: string) => void) {
  const jobs = collectiveNames(report);
  const variants = variantsOf(report);
  const runs = jobs.map((job) => variants.map((v) => collectiveOf(v.value, job)));
  const known = runs.map((column) =>
    column.map((job) => job?.ratio).filter((r) => typeof r === 'number'));
  const worst = Math.max(1, ...known.flat());
  const best = known.map((column) => (variants.length > 1 ? Math.min(...column) : undefined));
  const head = el('tr', {}, el('th', {scope: 'col', class: 'text'}, 'Variant'),
                  ...jobs.map((job) => el('th', {scope: 'col', class: 'text'}, job)));
  const rows = variants.map((variant, row) => {
    const button = el('button', {type: 'button', class: 'link'}, variant.name);
    button.addEventListener('click', () => select(variant.name));
    return el('tr', {'data-variant': variant.name},
              el('th', {scope: 'row', class: 'text'}, button,
                 el('small', {}, settings(variant.value))),
              ...jobs.map((_, column) => cell(runs[column]?.[row], worst, best[column])));
  });
  const grid = el('table', {class: 'overview'}, el('thead', {}, head), el('tbody', {}, ...rows));
  return section(
    'slowdown', 'Slowdown against the roofline',
    'Mean time of one iteration over the shortest time that the healthy fabric allows: 1.00 is ' +
      `ideal. Bars show the excess over 1.00, up to ${format.ratio(worst)}` +
      (variants.length > 1 ? '; the fastest variant of each job is bold.' : '.'),
    el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Slowdown'}, grid));
}
