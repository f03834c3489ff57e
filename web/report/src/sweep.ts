// A sweep: what is best, curves over any of its keys, cost against time with the Pareto front, rows.
import uPlot from 'uplot';
import {el, number, section, swatch, table, text} from './dom';
import * as format from './format';
import {axis, plot} from './plot';
import {dimensions, readTheme, type Theme} from './theme';

type Value = number | null | undefined;

interface Row {
  point: Record<string, string>;
  variant?: string;
  job?: string;
  error?: string;
  pareto?: string;
  time_s?: Value;
  busbw_GBps?: Value;
  ratio?: Value;
  worst_mmr?: Value;
  mfu?: Value;
  tokens_per_s_per_gpu?: Value;
  bubble?: Value;
  ttft_p99_s?: Value;
  tpot_p99_s?: Value;
  e2e_p99_s?: Value;
  output_tokens_per_s?: Value;
  goodput_per_s?: Value;
  kept?: Value;
  token_cost?: Value;
  cost?: Value;
  watts?: Value;
  per_s_per_cost?: Value;
  per_s_per_watt?: Value;
}

export interface Sweep {
  keys: string[];
  work_keys?: string[];  // rows are compared where these are the same
  rows: Row[];
  failed_points: number;
  missing_points?: number[];
  currency?: string;
}

interface Metric {
  name: keyof Row;
  title: string;
  show: (value: number | null) => string;
  scale?: number;  // of the axis
}
const plain = (value: number | null) => format.number(value);
const metrics: Metric[] = [
  {name: 'time_s', title: 'Time (ms)', show: format.seconds, scale: 1e3},
  {name: 'busbw_GBps', title: 'Bus bandwidth (GB/s)', show: plain},
  {name: 'ratio', title: 'Times the roofline', show: plain},
  {name: 'mfu', title: 'MFU (%)', show: format.percent, scale: 100},
  {name: 'tokens_per_s_per_gpu', title: 'Tokens/s per GPU', show: plain},
  {name: 'bubble', title: 'Bubble (%)', show: format.percent, scale: 100},
  {name: 'goodput_per_s', title: 'Goodput (requests/s)', show: plain},
  {name: 'ttft_p99_s', title: 'TTFT p99 (ms)', show: format.seconds, scale: 1e3},
  {name: 'tpot_p99_s', title: 'TPOT p99 (ms)', show: format.seconds, scale: 1e3},
  {name: 'e2e_p99_s', title: 'End to end p99 (s)', show: format.seconds},
  {name: 'kept', title: 'Objectives kept (%)', show: format.percent, scale: 100},
  {name: 'output_tokens_per_s', title: 'Output tokens/s', show: plain},
  {name: 'token_cost', title: 'Cost of a million output tokens', show: plain},
  {name: 'worst_mmr', title: 'Worst max/mean load of a tier', show: plain},
  {name: 'cost', title: 'Cost', show: plain},
  {name: 'watts', title: 'Power (kW)', show: (v) => (v === null ? format.none : `${plain(v / 1e3)} kW`), scale: 1e-3},
  {name: 'per_s_per_cost', title: 'Iterations/s per million', show: (v) => plain(v === null ? v : v * 1e6), scale: 1e6},
  {name: 'per_s_per_watt', title: 'Iterations/s per MW', show: (v) => plain(v === null ? v : v * 1e6), scale: 1e6},
];

const valueOf = (row: Row, metric: Metric): number | null => {
  const value = row[metric.name];
  return typeof value === 'number' ? value : null;
};
const known = (rows: Row[]) => metrics.filter((m) => rows.some((row) => valueOf(row, m) !== null));
const nameOf = (row: Row, keys: string[], variants: boolean) =>
  [...keys.map((key) => `${key} ${row.point[key]}`), ...(variants ? [row.variant ?? ''] : [])].join(', ');

// Values as numbers where all have the same unit, else as places in the order of the file.
interface Scale {
  at: (value: string) => number;
  unit: string;
  names: string[] | undefined;  // of the places
  log: boolean;
}
function scaleOf(values: string[]): Scale {
  const parts = values.map((value) => /^(-?[\d.]+(?:e[+-]?\d+)?)\s*(.*)$/i.exec(value));
  const units = new Set(parts.map((part) => part?.[2]));
  const numbers = parts.map((part) => Number(part?.[1]));
  if (units.size === 1 && !units.has(undefined) && numbers.every(Number.isFinite)) {
    const low = Math.min(...numbers);
    const lookup = new Map(values.map((value, i) => [value, numbers[i] ?? 0]));
    return {at: (value) => lookup.get(value) ?? 0, unit: [...units][0] ?? '', names: undefined,
            log: low > 0 && Math.max(...numbers) / low > 20};
  }
  return {at: (value) => values.indexOf(value), unit: '', names: values, log: false};
}

interface Line {
  name: string;
  points: Map<number, number>;
}
function linesOf(rows: Row[], keys: string[], x: string, scale: Scale, y: Metric, variants: boolean): Line[] {
  const others = keys.filter((key) => key !== x);
  const lines = new Map<string, Line>();
  for (const row of rows) {
    const value = valueOf(row, y);
    if (value === null || row.error !== undefined) continue;
    const name = nameOf(row, others, variants) || y.title;
    const line = lines.get(name) ?? {name, points: new Map<number, number>()};
    lines.set(name, line);
    line.points.set(scale.at(row.point[x] ?? ''), value);
  }
  return [...lines.values()];
}

const colours = (theme: Theme) => [theme.selected, theme.first, ...dimensions.map((d) => theme.parts[d] ?? theme.other)];

function curves(host: HTMLElement, rows: Row[], keys: string[], x: string, y: Metric, variants: boolean,
                theme: Theme): () => void {
  const scale = scaleOf([...new Set(rows.map((row) => row.point[x] ?? ''))]);
  const lines = linesOf(rows, keys, x, scale, y, variants);
  const xs = [...new Set(lines.flatMap((line) => [...line.points.keys()]))].sort((a, b) => a - b);
  if (xs.length === 0) {
    host.append(el('p', {class: 'lead'}, 'No row has this value.'));
    return () => {};
  }
  const palette = colours(theme);
  const colour = (at: number) => palette[at] ?? theme.other;
  const factor = y.scale ?? 1;
  const top = Math.max(...lines.flatMap((line) => [...line.points.values()])) * factor;
  const marks = format.ticks(top, 5);
  const place = (value: number) => (scale.names === undefined ? `${value} ${scale.unit}`.trim() : scale.names[value] ?? '');
  const margin = ((xs.at(-1) ?? 0) - (xs[0] ?? 0)) * 0.03 || 0.5;
  const end = plot(host, {
    label: `${y.title} over ${x}, ${lines.length} lines`,
    height: 320,
    data: [xs, ...lines.map((line) => xs.map((at) => {
      const value = line.points.get(at);
      return value === undefined ? null : value * factor;
    }))],
    tip: (_, index) => [
      el('div', {}, `${x}: ${place(xs[index] ?? 0)}`),
      ...lines.slice(0, 12).map((line, at) => {
        return swatch(`${line.name}: ${y.show(line.points.get(xs[index] ?? 0) ?? null)}`, colour(at), 'div');
      }),
      ...(lines.length > 12 ? [el('div', {}, `and ${lines.length - 12} more`)] : [])],
    options: {
      series: [{}, ...lines.map((_, at) => ({stroke: colour(at), width: at < palette.length ? 2 : 1, spanGaps: true,
                                             points: {show: true, size: 6, fill: colour(at)}}))],
      scales: {
        x: scale.log ? {time: false, distr: 3, log: 2} : {time: false, range: [(xs[0] ?? 0) - margin, (xs.at(-1) ?? 0) + margin]},
        y: {range: [0, marks.at(-1) ?? 1]},
      },
      axes: [axis(theme, scale.unit === '' ? x : `${x} (${scale.unit})`,
                  {splits: xs.length <= 16 || scale.names !== undefined ? xs : undefined, size: 30, space: 60,
                   values: (_, at) => at.map((v) => (v === null ? '' : scale.names === undefined ? String(v) : scale.names[v] ?? ''))}),
             axis(theme, y.title, {splits: marks, size: 60})],
    },
  });
  const key = el('p', {class: 'legend'}, ...lines.slice(0, palette.length).map((line, at) => {
    return swatch(line.name, colour(at));
  }), lines.length > palette.length ? el('span', {class: 'key'}, `${lines.length - palette.length} more`) : undefined);
  if (lines.length > 1) host.append(key);
  return () => {
    end();
    key.remove();
  };
}

// Costs on an axis, in thousands or millions.
const money = (value: number) =>
  (value >= 1e6 ? `${Number((value / 1e6).toPrecision(4))} M` : value >= 1e4 ? `${value / 1e3} k` : String(value));
const cost = (row: Row) => format.count(Math.round(row.cost ?? 0));

function paretoChart(host: HTMLElement, rows: Row[], keys: string[], currency: string, variants: boolean,
                     theme: Theme): () => void {
  const priced = rows.filter((row) => row.error === undefined && typeof row.cost === 'number' && typeof row.time_s === 'number')
    .sort((a, b) => (a.cost ?? 0) - (b.cost ?? 0));
  if (priced.length === 0) return () => {};
  const xs = priced.map((row) => row.cost ?? 0);
  const ys = priced.map((row) => (row.time_s ?? 0) * 1e3);
  const pick = (wanted: (row: Row) => boolean) => priced.map((row, i) => (wanted(row) ? ys[i] ?? null : null));
  const dots = (stroke: string, size: number): uPlot.Series =>
    ({stroke, width: 0, points: {show: true, size, fill: stroke}, paths: () => null});
  const marks = format.ticks(Math.max(...ys), 5);
  const room = ((xs.at(-1) ?? 0) - (xs[0] ?? 0)) * 0.05 || 1;
  const end = plot(host, {
    label: `Time against cost of ${priced.length} designs`,
    height: 320,
    data: [xs, pick(() => true), pick((row) => (row.pareto ?? '') !== ''), pick((row) => row.pareto === 'best')],
    tip: (_, index) => {
      const row = priced[index];
      if (row === undefined) return [];
      return [el('div', {}, nameOf(row, keys, variants)),
              el('div', {}, `${format.seconds(row.time_s ?? null)}, ${cost(row)} ${currency}, ` +
                            `${format.number((row.watts ?? 0) / 1e3)} kW`)];
    },
    options: {
      series: [{}, dots(theme.other, 6), dots(theme.selected, 9), dots(theme.first, 12)],
      scales: {x: {time: false, range: [(xs[0] ?? 0) - room, (xs.at(-1) ?? 0) + room]}, y: {range: [0, marks.at(-1) ?? 1]}},
      axes: [axis(theme, `Cost (${currency})`, {size: 30, space: 90, values: (_, at) => at.map(money)}),
             axis(theme, 'Time (ms)', {splits: marks, size: 60})],
    },
  });
  host.append(el('p', {class: 'legend'}, el('span', {class: 'key selected'}, 'Pareto front: nothing is faster, cheaper and uses less power'),
                 el('span', {class: 'key first'}, 'most iterations per cost'), el('span', {class: 'key'}, 'others')));
  return end;
}

function choice(label: string, names: string[], change: () => void) {
  const list = el('select', {'aria-label': label}, ...names.map((name) => el('option', {}, name))) as HTMLSelectElement;
  list.addEventListener('change', change);
  return {list, root: el('label', {class: 'choice'}, `${label} `, list)};
}

const shownRows = 500;
function rowsTable(sweep: Sweep, variants: boolean) {
  const shown = known(sweep.rows);
  const columns = [...sweep.keys.map(text), ...(variants ? [text('Variant')] : []), text('Job'),
                   ...shown.map((metric) => number(metric.title)), ...(sweep.currency === undefined ? [] : [text('Pareto')])];
  const cells = (row: Row) => [
    ...sweep.keys.map((key) => row.point[key] ?? ''), ...(variants ? [row.variant ?? ''] : []),
    row.error === undefined ? row.job ?? '' : `${row.job ?? ''} failed: ${row.error}`,
    ...shown.map((metric) => format.number(valueOf(row, metric) === null ? null : (valueOf(row, metric) ?? 0) * (metric.scale ?? 1))),
    ...(sweep.currency === undefined ? [] : [row.pareto ?? ''])];
  const cut = sweep.rows.length > shownRows ? ` The first ${shownRows} of ${format.count(sweep.rows.length)}; rows.csv has all.` : '';
  return section('rows', 'Rows', `In the order of the sweep.${cut}`,
                 table('Rows', columns, sweep.rows.slice(0, shownRows).map(cells)));
}

// Of services: the most goodput (else the shortest TTFT), and the cheapest tokens.
function serviceFindings(sweep: Sweep, keys: string[], variants: boolean) {
  const works = new Map<string, Row[]>();
  for (const row of sweep.rows) {
    if (row.error !== undefined || typeof row.ttft_p99_s !== 'number') continue;
    const name = [row.job ?? '', nameOf(row, sweep.work_keys ?? [], false)].filter((part) => part !== '').join(', ');
    works.set(name, [...(works.get(name) ?? []), row]);
  }
  return [...works].map(([name, rows]) => {
    const least = (of: (row: Row) => Value) =>
      rows.reduce((a, b) => ((of(b) ?? Infinity) < (of(a) ?? Infinity) ? b : a));
    const best = least((row) => (typeof row.goodput_per_s === 'number' ? -row.goodput_per_s : row.ttft_p99_s));
    const cheapest = least((row) => row.token_cost);
    const goodput = typeof best.goodput_per_s === 'number' ? `${format.number(best.goodput_per_s)} requests/s that keep their objectives, ` : '';
    return el('li', {}, el('strong', {}, name), `: best with ${nameOf(best, keys, variants)} (${goodput}TTFT p99 ${format.seconds(best.ttft_p99_s ?? null)}).` +
      (typeof cheapest.token_cost !== 'number' ? '' :
        ` Cheapest tokens with ${nameOf(cheapest, keys, variants)} (${format.number(cheapest.token_cost)} for a million).`));
  });
}

// The fastest row of each job and work, and the one with the most iterations per cost.
function findings(sweep: Sweep, variants: boolean) {
  const works = new Map<string, Row[]>();
  for (const row of sweep.rows) {
    if (row.error !== undefined || typeof row.time_s !== 'number') continue;
    const name = [row.job ?? '', nameOf(row, sweep.work_keys ?? [], false)].filter((part) => part !== '').join(', ');
    works.set(name, [...(works.get(name) ?? []), row]);
  }
  const keys = sweep.keys.filter((key) => !(sweep.work_keys ?? []).includes(key));
  const items = [...works].map(([name, rows]) => {
    const times = rows.map((row) => row.time_s ?? 0);
    const fastest = rows[times.indexOf(Math.min(...times))] as Row;
    const best = rows.find((row) => row.pareto === 'best');
    return el('li', {}, el('strong', {}, name), `: fastest with ${nameOf(fastest, keys, variants)} (${format.seconds(fastest.time_s ?? null)}), ` +
      `${format.ratio(Math.max(...times) / (fastest.time_s ?? 1))} times as fast as the slowest.` +
      (best === undefined ? '' : ` Most iterations per cost with ${nameOf(best, keys, variants)} ` +
        `(${format.seconds(best.time_s ?? null)}, ${cost(best)} ${sweep.currency ?? ''}).`));
  });
  items.push(...serviceFindings(sweep, keys, variants));
  const shown = 12;
  return el('ul', {class: 'findings'}, ...items.slice(0, shown),
            items.length > shown ? el('li', {}, `${items.length - shown} more below`) : undefined);
}

export function sweepPage(host: HTMLElement, sweep: Sweep) {
  const jobs = [...new Set(sweep.rows.flatMap((row) => row.job ?? []))];
  const variants = new Set(sweep.rows.flatMap((row) => row.variant ?? [])).size > 1;
  const points = new Set(sweep.rows.map((row) => JSON.stringify(row.point))).size;
  const drawing = el('div', {class: 'panel wide'});
  const pareto = el('div', {class: 'panel wide'});
  let ends: (() => void)[] = [];
  const draw = () => {
    ends.forEach((end) => end());
    drawing.replaceChildren();
    pareto.replaceChildren();
    const theme = readTheme();
    const rows = sweep.rows.filter((row) => row.job === job.list.value);
    const metric = known(sweep.rows).find((m) => m.title === y.list.value) ?? metrics[0];
    if (metric === undefined) return;
    ends = [curves(drawing, rows, sweep.keys, x.list.value, metric, variants, theme)];
    if (sweep.currency !== undefined) ends.push(paretoChart(pareto, rows, sweep.keys, sweep.currency, variants, theme));
  };
  const job = choice('Job', jobs, draw);
  const x = choice('Over', sweep.keys, draw);
  const y = choice('Show', known(sweep.rows).map((metric) => metric.title), draw);
  const missing = sweep.missing_points?.length ?? 0;
  host.append(
    el('header', {}, el('p', {class: 'brand'}, 'weft sweep'), el('h1', {}, document.title.replace(/ - weft sweep$/, '')),
       el('p', {class: 'lead'}, `${format.count(points)} points over ${sweep.keys.join(', ')}` +
          (sweep.failed_points > 0 ? `; ${sweep.failed_points} failed` : '') + (missing > 0 ? `; ${missing} did not run` : '')),
       findings(sweep, variants)),
    section('curves', 'Curves', '', el('div', {class: 'choices'}, job.root, y.root, x.root), drawing),
    ...(sweep.currency === undefined ? [] : [section('pareto', 'Time against cost', '', pareto)]),
    rowsTable(sweep, variants));
  draw();
  for (const query of ['(prefers-color-scheme: dark)', 'print']) window.matchMedia(query).addEventListener('change', draw);
}
