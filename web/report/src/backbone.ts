// A backbone: where traffic goes, the room that is left and what failures cost; and the day of bulk transfers.
import {mark} from './bandwidth';
import {el, number, pageHeader, section, table, text} from './dom';
import * as format from './format';
import {MapView} from './heatmap';
import {lines, redrawn} from './infer';
import {rampBar, readTheme, type Theme} from './theme';
import {wanMap, type Link, type Site} from './wanmap';

interface Class {
  class: number;
  demands: number;
  unroutable: number;
  asked_bps: number;
  unroutable_bps: number;
  sent_bps: number;
  value: number;
  bound: number;
  bound_all_paths: number;
  gap: number;
}
interface Failure {
  name: string;
  cables: number[];
  value: number;
  gap: number;
  unroutable_bps: number;
}
export interface Engineered {
  objective: 'throughput' | 'mlu';
  k: number;
  classes: Class[];
  links: (Link & {price: number[]})[];
  failures?: Failure[];
}
export interface Bulk {
  objective: 'peaks' | 'mlu';
  value: number;
  bound: number;
  gap: number;
  background: number;
  uniform: number;
  excess_bps: number;
  over_bps: number;
  late: number;
  transfers: {id: string; bytes: number; sent_bytes: number}[];
  links: {src: string; dst: string; rate_bps: number; load_bps: number[]}[];
}
export interface BulkPlan {
  slot_s: number;
  transfers: {release: number; deadline: number; rate_bps: number[]}[];
  links: {before_bps: number[]; uniform_bps: number[]}[];
}

const rowsMax = 200;
const use = (link: Link) => link.load_bps / link.rate_bps;
const peak = (rates: number[]) => rates.reduce((a, b) => Math.max(a, b), 0);
const shown = (all: number) => (all <= rowsMax ? '' : `The ${rowsMax} first of ${format.count(all)}.`);

// For mlu, prices times capacities sum up to 1, and a link's capacity changes the value by value times price: in percent per Gbps.
const price = (te: Engineered, y: number) => format.number(te.objective === 'mlu' ? y * (te.classes.at(-1)?.value ?? 1) * 1e11 : y);

function classFinding(te: Engineered, one: Class) {
  const whose = te.classes.length > 1 ? `Class ${one.class}: ` : '';
  const lost = one.unroutable === 0 ? '' : ` ${format.count(one.unroutable)} of its demands have no path: ${format.rate(one.unroutable_bps)}.`;
  return te.objective === 'mlu'
    ? `${whose}Worst link at ${format.percent(one.value)}; no routing on these paths is below ${format.percent(one.bound)}, none on any below ${format.percent(one.bound_all_paths)}.${lost}`
    : `${whose}${format.rate(one.value)} sent of ${format.rate(one.asked_bps)}; no routing on these paths sends more than ${format.rate(one.bound)}, none on any more than ${format.rate(one.bound_all_paths)}.${lost}`;
}

// From worst to best, as a share of what the whole backbone carries, or as use of the worst link.
function failureBars(te: Engineered, failures: Failure[]) {
  const whole = te.classes.reduce((sum, one) => sum + one.value, 0);
  const top = te.objective === 'mlu' ? Math.max(1, ...failures.map((one) => one.value)) : whole || 1;
  return el('div', {class: 'panel wide', role: 'list', 'aria-label': 'What each failure leaves'}, ...failures.slice(0, 40).map((one) => {
    const share = one.value / top;
    const value = te.objective === 'mlu' ? format.percent(one.value) : share > 0.9995 ? '0 %' : `−${format.percent(1 - share)}`;
    const track = el('div', {class: 'track'}, te.objective === 'mlu' ? mark(one.value > 1 ? 'bar lost' : 'bar kept', 0, share * 100)
      : mark('bar lost', Math.min(share, 1) * 100, Math.max(0, 1 - share) * 100));
    return el('div', {class: 'bar-row', role: 'listitem'}, el('span', {class: 'name', title: one.name}, one.name), track, el('span', {class: 'value'}, value));
  }));
}

function failureSection(te: Engineered) {
  const failures = te.failures ?? [];
  if (failures.length === 0) return [];
  const value = (one: Failure) => (te.objective === 'mlu' ? format.percent(one.value) : format.rate(one.value));
  return [section('failures', 'Failures', te.objective === 'mlu' ? 'Use of the worst link after each, routed anew.'
    : 'What is no longer sent after each, routed anew, of all that the whole backbone sends.', failureBars(te, failures),
                  table('Failures', [text('What fails'), number('Cables'), number(te.objective === 'mlu' ? 'Worst link' : 'Sent'), number('Gap'), number('Without a path')],
                        failures.slice(0, rowsMax).map((one) => [one.name, String(one.cables.length), value(one), format.percent(one.gap),
                                                                 one.unroutable_bps > 0 ? format.rate(one.unroutable_bps) : format.none])),
                  el('p', {class: 'lead'}, shown(failures.length)))];
}

export function tePage(host: HTMLElement, te: Engineered, sites: Site[]) {
  const links = [...te.links].sort((a, b) => use(b) - use(a));
  const first = links[0];
  const worst = te.failures?.[0];
  const findings = te.classes.map((one) => classFinding(te, one));
  if (first !== undefined) findings.push(`Busiest: ${first.src} to ${first.dst}, ${format.rate(first.load_bps)} of ${format.rate(first.rate_bps)}.`);
  if (worst !== undefined)
    findings.push(`Worst failure: ${worst.name}, ${te.objective === 'mlu' ? `the worst link then at ${format.percent(worst.value)}` : `${format.rate(worst.value)} sent`}.`);
  const map = el('div', {class: 'panel wide'});
  host.append(
    pageHeader('te', `${format.count(sites.length)} sites, ${format.count(links.length / 2)} cables, ${te.k} paths for a demand`, findings),
    section('map', 'Where traffic goes', 'Each direction of a cable keeps to the right of it; wider ones carry more.', map),
    ...(te.classes.length < 2 ? [] : [section('classes', 'Classes', 'In strict priority: each gets what those before it leave.',
      table('Classes', [text('Class'), number('Demands'), number('Asked'), number('Sent'), number('Gap')],
            te.classes.map((one) => [String(one.class), format.count(one.demands), format.rate(one.asked_bps), format.rate(one.sent_bps), format.percent(one.gap)])))]),
    section('links', 'Links and their room', te.objective === 'mlu' ? 'The price is by how many percentage points one more Gbps of capacity would lower the worst link.'
      : 'The price is how much more would be sent for each unit of capacity more.',
            table('Links', [text('From'), text('To'), number('Capacity'), number('Load'), number('Use'), number('Headroom'), number('Price')],
                  links.slice(0, rowsMax).map((link) => [link.src, link.dst, format.rate(link.rate_bps), format.rate(link.load_bps), format.percent(use(link)),
                                                         format.rate(Math.max(0, link.rate_bps - link.load_bps)), price(te, link.price.at(-1) ?? 0)])),
            el('p', {class: 'lead'}, shown(links.length))),
    ...failureSection(te));
  let end = () => {};
  redrawn(() => {
    end();
    end = wanMap(map, sites, te.links, readTheme());
  });
}

// Hours of the middle of slots.
const hoursOf = (plan: BulkPlan, slot: number) => (slot * plan.slot_s) / 3600;
const clock = (plan: BulkPlan, slot: number) => `${format.plain(hoursOf(plan, slot))} h`;

// One link over the day: steps, each level in its slot.
function dayLines(bulk: Bulk, plan: BulkPlan, at: number, panel: HTMLElement, theme: Theme) {
  const link = bulk.links[at], beside = plan.links[at];
  if (link === undefined || beside === undefined) return () => {};
  const line = (name: string, rates: number[]) => ({
    name, x: rates.flatMap((_, slot) => [hoursOf(plan, slot), hoursOf(plan, slot + 1) - 1e-6]), y: rates.flatMap((rate) => [rate / 1e9, rate / 1e9])});
  const all = [line('with the plan', link.load_bps), line('at constant rates', beside.uniform_bps), line('without transfers', beside.before_bps)];
  return lines(panel, `Load of ${link.src} to ${link.dst}, ${all.length} lines`, all, ['hours', 'Gbps'],
               Math.max(link.rate_bps / 1e9, ...all.flatMap(({y}) => y)), theme);
}

function cells(rows: (number | null)[][], slots: number) {
  return Array.from({length: slots}, (_, slot) => rows.map((row) => row[slot] ?? null));
}

function transferMap(bulk: Bulk, plan: BulkPlan, order: number[], panel: HTMLElement, theme: Theme) {
  const rows = order.map((at) => plan.transfers[at]?.rate_bps.map((rate, slot) => {
    const {release, deadline} = plan.transfers[at] ?? {release: 0, deadline: 0};
    return slot >= release && slot < deadline ? rate : null;
  }) ?? []);
  const top = Math.max(...rows.map((row) => peak(row.map((rate) => rate ?? 0))), 1);
  const legend = el('p', {class: 'legend'}, el('span', {}, 'Rate: 0', rampBar(theme), format.rate(top)),
                    el('span', {class: 'key missing'}, 'before its release, or past its deadline'));
  panel.append(legend);
  const view = new MapView(panel, {
    cells: cells(rows, plan.links[0]?.before_bps.length ?? 0), max: top, label: 'Rates of transfers by slot', titles: ['hours', 'transfer'],
    per: [plan.slot_s / 3600, 1], names: order.map((at) => bulk.transfers[at]?.id ?? ''),
    describe: (slot, row) => [el('div', {}, bulk.transfers[order[row] ?? 0]?.id ?? ''),
                              el('div', {}, `${clock(plan, slot)}: ${format.rate(rows[row]?.[slot] ?? null)}`)]}, theme);
  return {view, end: () => panel.replaceChildren()};
}

function linkMap(bulk: Bulk, plan: BulkPlan, order: number[], panel: HTMLElement, theme: Theme) {
  const rows = order.map((at) => bulk.links[at]?.load_bps.map((load) => load / (bulk.links[at]?.rate_bps ?? 1)) ?? []);
  panel.append(el('p', {class: 'legend'}, el('span', {}, 'Use: 0', rampBar(theme), '100 %')));
  const name = (at: number) => `${bulk.links[at]?.src ?? ''} → ${bulk.links[at]?.dst ?? ''}`;
  const view = new MapView(panel, {
    cells: cells(rows, plan.links[0]?.before_bps.length ?? 0), max: 1, label: 'Use of links by slot', titles: ['hours', 'link'],
    per: [plan.slot_s / 3600, 1], names: order.map(name),
    describe: (slot, row) => [el('div', {}, name(order[row] ?? 0)),
                              el('div', {}, `${clock(plan, slot)}: ${format.rate(bulk.links[order[row] ?? 0]?.load_bps[slot] ?? null)}, ${format.percent(rows[row]?.[slot] ?? null)}`)]}, theme);
  return {view, end: () => panel.replaceChildren()};
}

export function bulkPage(host: HTMLElement, bulk: Bulk, plan: BulkPlan, sites: Site[]) {
  const value = (v: number) => (bulk.objective === 'mlu' ? format.percent(v) : format.rate(v));
  const of = (at: number) => peak(bulk.links[at]?.load_bps ?? []) / (bulk.links[at]?.rate_bps ?? 1);
  const byUse = bulk.links.map((_, at) => at).filter((at) => of(at) > 0).sort((a, b) => of(b) - of(a));
  const bySize = bulk.transfers.map((_, at) => at).sort((a, b) => (bulk.transfers[b]?.bytes ?? 0) - (bulk.transfers[a]?.bytes ?? 0)).slice(0, rowsMax);
  const change = bulk.uniform > 0 ? (bulk.value / bulk.uniform - 1) * 100 : 0;
  const findings = [
    `${bulk.objective === 'mlu' ? 'Worst link and slot' : 'Sum of the links’ peaks'}: ${value(bulk.value)}, ${change > 0 ? '+' : '−'}${Math.abs(change).toFixed(1)} % against constant rates (${value(bulk.uniform)}); ${value(bulk.background)} without transfers.`,
    `No plan has less than ${value(bulk.bound)} (gap ${format.number(bulk.gap * 100, 2)} %).`,
    bulk.late === 0 ? 'Every transfer meets its deadline.' : `${format.count(bulk.late)} of ${format.count(bulk.transfers.length)} transfers are LATE.`,
    ...(bulk.over_bps > 1 ? [`Links are ABOVE their capacity, the worst by ${format.rate(bulk.over_bps)}.`] : [])];
  const day = el('div', {class: 'panel wide'}), transfers = el('div', {class: 'panel wide'}), use = el('div', {class: 'panel wide'}), map = el('div', {class: 'panel wide'});
  const choice = el('select', {id: 'which-link'}, ...byUse.map((at) => el('option', {value: String(at)},
    `${bulk.links[at]?.src ?? ''} to ${bulk.links[at]?.dst ?? ''}: ${format.percent(of(at))} at most`))) as HTMLSelectElement;
  const plot = el('div', {});
  day.append(el('label', {for: 'which-link'}, 'Link '), choice, plot);
  host.append(
    pageHeader('bulk', `${format.count(bulk.transfers.length)} transfers over ${format.count(sites.length)} sites, ` +
      `${format.count(plan.links[0]?.before_bps.length ?? 0)} slots of ${format.span(plan.slot_s)}`, findings),
    ...(byUse.length === 0 ? [] : [section('day', 'A link over the day', 'With the plan, with every transfer at one rate from release to deadline, and without transfers.', day)]),
    ...(bySize.length === 0 ? [] : [section('transfers', 'When each transfer sends',
      bySize.length === bulk.transfers.length ? '' : `The ${rowsMax} largest of ${format.count(bulk.transfers.length)}.`, transfers)]),
    ...(byUse.length === 0 ? [] : [section('use', 'Links by slot',
      byUse.length <= rowsMax ? 'By their busiest slot.' : `The ${rowsMax} busiest of ${format.count(bulk.links.length)}.`, use)]),
    section('map', 'The busiest slot of each link', '', map),
    section('list', 'Transfers', '', table('Transfers', [text('Transfer'), number('Size'), number('Release'), number('Deadline'), number('Most at a time'), number('Sent')],
      bySize.map((at) => {
        const one = bulk.transfers[at], its = plan.transfers[at];
        return [one?.id ?? '', format.decimalBytes(one?.bytes ?? 0), clock(plan, its?.release ?? 0), clock(plan, its?.deadline ?? 0),
                format.rate(peak(its?.rate_bps ?? [])), format.percent((one?.sent_bytes ?? 0) / (one?.bytes ?? 1))];
      }))));
  let ends: (() => void)[] = [];
  let views: MapView[] = [];
  let endDay = () => {};
  const showDay = () => {
    endDay();
    endDay = dayLines(bulk, plan, Number(choice.value), plot, readTheme());
  };
  choice.addEventListener('change', showDay);
  redrawn(() => {
    ends.forEach((end) => end());
    const theme = readTheme();
    const maps = [...(bySize.length === 0 ? [] : [transferMap(bulk, plan, bySize, transfers, theme)]),
                  ...(byUse.length === 0 ? [] : [linkMap(bulk, plan, byUse.slice(0, rowsMax), use, theme)])];
    const peaks = bulk.links.map((link) => ({src: link.src, dst: link.dst, rate_bps: link.rate_bps, load_bps: peak(link.load_bps)}));
    ends = [...maps.map(({end}) => end), wanMap(map, sites, peaks, theme)];
    views = maps.map(({view}) => view);
    if (byUse.length > 0) showDay();
  });
  new ResizeObserver(() => views.forEach((view) => view.draw())).observe(transfers);
}
