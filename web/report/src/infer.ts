// A service: how its latencies are distributed, which objectives it keeps, what it carries; or its goodput over rates.
import uPlot from 'uplot';
import {el, number, pageHeader, section, swatch, table, text} from './dom';
import * as format from './format';
import {axis, plot} from './plot';
import {dimensions, readTheme, type Theme} from './theme';

interface Objective {
  class: string;
  percentile: number;
  requests: number;
  met: number;
  ttft_s: number | null;
  ttft_bar_s: number | null;
  tpot_s: number | null;
  tpot_bar_s: number | null;
  holds: boolean;
}
interface Spread {
  mean: number;
  p50: number;
  p90: number;
  p99: number;
}
interface Served {
  latency_s: Record<string, Spread>;
  measured_s?: Record<string, Spread>;
  requests: number;
  replicas: number;
  decode_replicas: number;
  gpus: number;
  requests_per_s: number;
  output_tokens_per_s: number;
  goodput_per_s: number | null;
  cost_per_million_output_tokens: number | null;
  busy: number;
  preemptions: number;
  kv_bytes_moved: number;
  unfinished: number;
  why_unfinished: string;
  objectives: Objective[];
  jobs: {name: string; steps_s: number[]; alone_s: number | null}[];
  notes: string[];
}
export interface Service {
  variants: Record<string, Served>;
}
export type Quantiles = Record<string, Record<string, number[]>>;
interface Point {
  rate_per_s: number;
  goodput_per_s: number;
  kept: number;
  holds: boolean;
}
export interface Curves {
  variants: Record<string, {capacity_per_s: number; over_per_s: number | null; points: Point[]}>;
}

export interface Line {
  name: string;
  x: number[];
  y: number[];
}
const colourOf = (theme: Theme, at: number) =>
  [theme.selected, theme.first, ...dimensions.map((d) => theme.parts[d] ?? theme.other)][at] ?? theme.other;

// Each with places of its own along the axis.
export function lines(host: HTMLElement, label: string, all: Line[], titles: [string, string], top: number, theme: Theme, least = 0) {
  const xs = [...new Set(all.flatMap((line) => line.x))].sort((a, b) => a - b);
  const marks = format.ticks(top - least, 5).map((mark) => mark + least);
  const end = plot(host, {
    label,
    height: 320,
    data: [xs, ...all.map((line) => {
      const at = new Map(line.x.map((x, i) => [x, line.y[i] ?? null]));
      return xs.map((x) => at.get(x) ?? null);
    })],
    tip: (x) => [el('div', {}, `${titles[0]}: ${format.number(x)}`), ...all.map((line, i) => {
      const last = line.x.filter((place) => place <= x).length - 1;
      return swatch(`${line.name}: ${last < 0 ? format.none : format.number(line.y[last] ?? null)}`, colourOf(theme, i), 'div');
    })],
    options: {
      series: [{}, ...all.map((_, i) => ({stroke: colourOf(theme, i), width: 2, spanGaps: true, points: {show: false}}))],
      scales: {x: {time: false, range: [0, xs.at(-1) ?? 1]}, y: {range: [least, marks.at(-1) ?? 1]}},
      axes: [axis(theme, titles[0], {size: 30, space: 60}), axis(theme, titles[1], {splits: marks, size: 50})],
    } as Partial<uPlot.Options>,
  });
  const legend = el('p', {class: 'legend'}, ...all.map((line, i) => swatch(line.name, colourOf(theme, i))));
  host.append(legend);
  return () => {
    end();
    legend.remove();
  };
}

export function redrawn(draw: () => void) {
  draw();
  for (const query of ['(prefers-color-scheme: dark)', 'print']) window.matchMedia(query).addEventListener('change', draw);
}

const whose = (objective: Objective) => (objective.class === '' ? 'all others' : objective.class);
const bar = (value: number | null, limit: number | null) =>
  (limit === null ? format.none : `${value === null ? 'never' : format.seconds(value)} of ${format.seconds(limit)}`);

function finding(name: string, served: Served) {
  const missed = served.objectives.filter((objective) => !objective.holds).map(whose);
  const kept = served.objectives.length === 0 ? '' : missed.length === 0 ? ' All objectives are kept.' : ` MISSED by ${missed.join(', ')}.`;
  const never = served.unfinished === 0 ? '' : ` ${format.count(served.unfinished)} requests never ended: ${served.why_unfinished}.`;
  return `${name}: TTFT p99 ${format.seconds(served.latency_s['ttft']?.p99 ?? null)}, TPOT p99 ${format.seconds(served.latency_s['tpot']?.p99 ?? null)}, ` +
    `${format.number(served.requests_per_s)} requests/s on ${served.gpus} GPU${served.gpus === 1 ? '' : 's'}.${kept}${never}`;
}

function objectives(all: [string, Served][]) {
  const rows = all.flatMap(([name, served]) => served.objectives.map((objective) =>
    [name, whose(objective), `p${objective.percentile}`, bar(objective.ttft_s, objective.ttft_bar_s), bar(objective.tpot_s, objective.tpot_bar_s),
     format.percent(objective.met / Math.max(1, objective.requests)), objective.holds ? 'kept' : 'missed']));
  if (rows.length === 0) return [];
  const columns = [text('Variant'), text('Class'), text('Of'), number('TTFT'), number('TPOT'), number('Requests that keep it'), text('')];
  return [section('objectives', 'Objectives', '', table('Objectives', columns, rows))];
}

function parts(all: [string, Served][]) {
  const names = ['queue', 'prefill', 'transfer', 'ttft', 'tpot', 'e2e'];
  const columns = [text('Variant'), text('Latency'), ...['mean', 'p50', 'p90', 'p99'].map(number), number('p99 measured')];
  const rows = all.flatMap(([variant, served]) => names.flatMap((name) => {
    const spread = served.latency_s[name];
    if (spread === undefined) return [];
    const measured = served.measured_s?.[name];
    return [[variant, name, ...[spread.mean, spread.p50, spread.p90, spread.p99].map(format.seconds),
             measured === undefined ? format.none : format.seconds(measured.p99)]];
  }));
  return section('latencies', 'Latencies', 'TTFT is queue, prefill and transfer of the KV cache.', table('Latencies', columns, rows));
}

function loads(all: [string, Served][]) {
  const columns = [text('Variant'), number('Replicas'), number('GPUs'), number('Requests/s'), number('Goodput/s'), number('Output tokens/s'),
                   number('Busy'), number('Preemptions'), number('KV caches moved'), number('Cost of a million output tokens')];
  return section('loads', 'What it carried', '', table('What it carried', columns, all.map(([name, s]) => [
    name, s.decode_replicas > 0 ? `${s.replicas} + ${s.decode_replicas}` : String(s.replicas), format.count(s.gpus), format.number(s.requests_per_s),
    format.number(s.goodput_per_s), format.number(s.output_tokens_per_s), format.percent(s.busy), format.count(s.preemptions),
    s.kv_bytes_moved > 0 ? format.bytes(s.kv_bytes_moved) : format.none, format.number(s.cost_per_million_output_tokens)])));
}

function jobs(all: [string, Served][]) {
  const rows = all.flatMap(([name, served]) => served.jobs.map((job) => {
    const mean = job.steps_s.length === 0 ? null : job.steps_s.reduce((a, b) => a + b) / job.steps_s.length;
    return [name, job.name, format.count(job.steps_s.length), format.seconds(mean), format.seconds(job.alone_s),
            mean === null || job.alone_s === null ? format.none : (mean / job.alone_s).toFixed(4)];
  }));
  if (rows.length === 0) return [];
  return [section('jobs', 'Jobs beside it', '', table('Jobs beside it', [text('Variant'), text('Job'), number('Steps'), number('Mean'), number('Alone'), number('×')], rows))];
}

export function inferPage(host: HTMLElement, service: Service, quantiles: Quantiles) {
  const all = Object.entries(service.variants);
  const drawing = el('div', {class: 'panel wide'});
  const kinds: [string, string][] = [['ttft', 'TTFT'], ['tpot', 'TPOT'], ['e2e', 'End to end'], ['queue', 'Queue'], ['prefill', 'Prefill'], ['transfer', 'Transfer']];
  const list = el('select', {'aria-label': 'Show'}, ...kinds.map(([, title]) => el('option', {}, title))) as HTMLSelectElement;
  let end = () => {};
  const draw = () => {
    end();
    const [key, title] = kinds[list.selectedIndex] ?? ['ttft', 'TTFT'];
    const drawn = all.map(([name]) => {
      const values = quantiles[name]?.[key] ?? [];
      return {name, x: values.map((value) => value * 1e3), y: values.map((_, percent) => percent)};
    });
    end = lines(drawing, `Distribution of ${title}, ${drawn.length} lines`, drawn, [`${title} (ms)`, '% of requests at most'], 100, readTheme());
  };
  list.addEventListener('change', draw);
  const notes = all.flatMap(([name, served]) => served.notes.map((note) => el('li', {}, el('strong', {}, `${name}: `), note)));
  const requests = all[0]?.[1].requests ?? 0;
  host.append(pageHeader('infer', `${format.count(requests)} requests`, all.map(([name, served]) => finding(name, served))),
              section('distribution', 'How latencies are distributed', '', el('div', {class: 'choices'}, el('label', {}, 'Show ', list)), drawing),
              ...objectives(all), parts(all), loads(all), ...jobs(all),
              ...(notes.length === 0 ? [] : [section('notes', 'Notes', '', el('ul', {}, ...notes))]));
  redrawn(draw);
}

export function curvesPage(host: HTMLElement, curves: Curves) {
  const all = Object.entries(curves.variants);
  const drawing = el('div', {class: 'panel wide'});
  const top = Math.max(...all.flatMap(([, curve]) => curve.points.map((point) => point.goodput_per_s)));
  let end = () => {};
  const draw = () => {
    end();
    end = lines(drawing, `Goodput over rates, ${all.length} lines`,
                all.map(([name, curve]) => ({name, x: curve.points.map((p) => p.rate_per_s), y: curve.points.map((p) => p.goodput_per_s)})),
                ['requests/s asked for', 'requests/s that keep their objectives'], top, readTheme());
  };
  const rows = all.flatMap(([name, curve]) => curve.points.map((point) =>
    [name, format.number(point.rate_per_s), format.number(point.goodput_per_s), format.percent(point.kept), point.holds ? 'kept' : 'missed']));
  host.append(pageHeader('infer', 'The same requests, faster and slower', all.map(([name, curve]) =>
    `${name}: ${curve.capacity_per_s === 0 ? 'no rate that was tried keeps' : `${format.number(curve.capacity_per_s)} requests/s keep`} the objectives` +
    (curve.over_per_s === null ? '.' : `, ${format.number(curve.over_per_s)} do not.`))),
              section('curve', 'Goodput', '', drawing),
              section('rates', 'Rates', '', table('Rates', [text('Variant'), number('Requests/s'), number('Goodput/s'), number('Requests that keep it'), text('Objectives')], rows)));
  redrawn(draw);
}
