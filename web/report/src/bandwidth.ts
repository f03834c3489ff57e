// Bus bandwidth: a group of bars per job, one bar per variant, and the roofline across them.
import {collectiveNames, collectiveOf, variantsOf, type Job, type Named, type Report, type Variant}
  from './data';
import {el, section} from './dom';
import * as format from './format';

type Row = Named<Job | undefined>;

function distinct(values: string[]): string {
  return [...new Set(values)].join(' / ');
}

function summary(jobs: Job[]): string {
  const of = (get: (job: Job) => string) => distinct(jobs.map(get));
  return [of((j) => j.op), of((j) => j.algorithm), `${of((j) => format.count(j.gpus))} GPUs`,
          `${of((j) => format.bytes(j.bytes_per_rank))} per rank`, of((j) => j.placement)]
    .filter((part) => part !== '').join(' · ');
}

export function mark(kind: string, left: number, width?: number) {
  const node = el('span', {class: kind});
  node.style.left = `${left}%`;
  if (width !== undefined) node.style.width = `${width}%`;
  return node;
}

// Bandwidth goes with 1 / time: the slowest iteration gives the lower end of the range.
function range(job: Job, scale: number) {
  const {mean, min, max} = job.time_s;
  if (mean === null || min === null || max === null || job.busbw_GBps === null) return undefined;
  if (!(min > 0) || max / min < 1.0005) return undefined;
  const [low, high] = [(job.busbw_GBps * mean) / max, (job.busbw_GBps * mean) / min];
  return mark('range', low * scale, Math.min(high * scale, 100) - low * scale);
}

function bar(row: Row, scale: number) {
  const job = row.value;
  const track = el('div', {class: 'track'});
  if (job?.busbw_GBps != null) {
    track.append(mark('bar', 0, job.busbw_GBps * scale));
    const spread = range(job, scale);
    if (spread !== undefined) track.append(spread);
  }
  if (job?.roofline_busbw_GBps != null) {
    track.append(mark('roofline', Math.min(job.roofline_busbw_GBps * scale, 100)));
  }
  const stopped = job?.unfinished ?? null;
  const text = job === undefined ? 'not run' : stopped !== null
    ? 'unfinished' : format.number(job.busbw_GBps);
  return el('div', {class: 'bar-row', role: 'listitem', 'data-variant': row.name},
            el('span', {class: 'name', title: row.name}, row.name), track,
            el('span', stopped === null ? {class: 'value'}
              : {class: 'value', title: format.unfinished(stopped)}, text));
}

export function axis(title: string, marks: number[], max: number, name = (value: number) => String(value)) {
  const labels = marks.map((value) => {
    const label = el('span', {}, name(value));
    label.style.left = `${(value / max) * 100}%`;
    return label;
  });
  return el('div', {class: 'bar-row axis', 'aria-hidden': 'true'}, el('span'),
            el('div', {class: 'ticks'}, ...labels, el('p', {}, title)),
            el('span'));
}

function panel(name: string, variants: Named<Variant>[]) {
  const rows: Row[] =
    variants.map((v) => ({name: v.name, value: collectiveOf(v.value, name)}));
  const jobs = rows.flatMap((row) => row.value ?? []);
  const top = Math.max(0, ...jobs.flatMap((j) => [j.busbw_GBps ?? 0, j.roofline_busbw_GBps ?? 0]));
  const marks = format.ticks(top, 5);
  const max = marks[marks.length - 1] ?? 1;
  return el('figure', {class: 'panel'},
            el('figcaption', {}, el('strong', {}, name), el('small', {}, summary(jobs))),
            el('div', {class: 'bars', role: 'list', 'aria-label': `Bus bandwidth of ${name}, GB/s`},
               ...rows.map((row) => bar(row, 100 / max))),
            axis('Bus bandwidth (GB/s)', marks, max));
}

export function bandwidth(report: Report) {
  const variants = variantsOf(report);
  const key = (kind: string, text: string) => el('span', {class: `key ${kind}`}, text);
  const legend = el('p', {class: 'legend'},
                    key('selected', 'selected variant'),
                    variants.length > 1 ? key('first', 'first variant') : undefined,
                    variants.length > 1 ? key('other', 'other variants') : undefined,
                    key('roofline', 'roofline'), key('range', 'slowest to fastest iteration'));
  return section('bandwidth', 'Bus bandwidth',
                 'As nccl-tests define it: independent of the number of ranks, comparable with ' +
                   'the speed of the hardware. The roofline is what a fabric without ' +
                   'collisions or faults would give.',
                 legend, el('div', {class: 'panels'},
                            ...collectiveNames(report).map((name) => panel(name, variants))));
}
