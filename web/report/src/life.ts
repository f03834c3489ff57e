// A cluster's weeks: what takes the time that is not goodput as a waterfall, what interrupts, and what would change it.
import {axis, mark} from './bandwidth';
import {el, number, pageHeader, section, table, text} from './dom';
import * as format from './format';

interface Mean {
  mean: number;
  within_95: number;
}
export interface Life {
  hosts: number;
  spares: number;
  span_s: number;
  runs: number;
  rates?: string;
  rates_times: number;
  goodput: Mean;
  goodput_p5: number;
  goodput_p95: number;
  interruptions: Mean;
  parts: {part: string; share: number; seconds: number}[];
  groups: {group: string; interruptions: number; cost: number}[];
  every_s: number;
  closed_form: number;
  best_every_s: number;
  best_closed_form: number;
  what_ifs: {what_if: string; goodput: Mean; change: Mean}[];
  surface?: {goodput: number; points: {stall_s: number; every_s: number | null; longest_stop_s: number | null}[]};
}

const points = (share: number, digits = 2) => (share * 100).toFixed(digits);

// From the whole time down to the work that counts; the axis begins just below that.
function waterfall(life: Life) {
  const lost = life.parts.filter((part) => part.part !== 'compute' && part.share > 0);
  const goodput = life.parts.find((part) => part.part === 'compute')?.share ?? life.goodput.mean;
  const least = Math.max(0, Math.floor((goodput * 100 - 1) / 5) * 5);
  const place = (percent: number) => ((percent - least) / (100 - least)) * 100;
  const row = (name: string, from: number, to: number, value: string, kind: string) => {
    const track = el('div', {class: 'track'}, mark(kind, Math.max(0, place(from)), place(to) - Math.max(0, place(from))));
    return el('div', {class: 'bar-row', role: 'listitem'}, el('span', {class: 'name', title: name}, name), track, el('span', {class: 'value'}, value));
  };
  let left = 100;
  const rows = lost.map((part) => {
    const to = left;
    left -= part.share * 100;
    return row(part.part, left, to, `−${points(part.share)} %`, 'bar lost');
  });
  const marks = format.ticks(100 - least, 5).map((step) => step + least).filter((at) => at <= 100);
  return el('div', {class: 'panel wide waterfall', role: 'list', 'aria-label': 'Waterfall from all time to goodput'},
            ...rows, row('goodput', 0, goodput * 100, `${points(goodput)} %`, 'bar kept'),
            axis('% of the time', marks.map((at) => at - least), 100 - least, (value) => String(value + least)));
}

// Changes on one scale, with the interval that holds 95 % of them.
function whatIfs(life: Life) {
  if (life.what_ifs.length === 0) return [];
  const reach = Math.max(...life.what_ifs.map(({change}) => Math.abs(change.mean) + change.within_95), 1e-6);
  const place = (change: number) => 50 + (change / reach) * 50;
  const rows = life.what_ifs.map(({what_if, change}) => {
    const [from, to] = [Math.min(50, place(change.mean)), Math.max(50, place(change.mean))];
    const track = el('div', {class: 'track'}, mark(change.mean < 0 ? 'bar lost' : 'bar kept', from, to - from),
                     mark('range', place(change.mean - change.within_95), (change.within_95 / reach) * 100), mark('roofline', 50));
    const value = `${change.mean < 0 ? '−' : '+'}${points(Math.abs(change.mean))}`;
    return el('div', {class: 'bar-row', role: 'listitem'}, el('span', {class: 'name', title: what_if}, what_if), track, el('span', {class: 'value'}, value));
  });
  const columns = [text('What if'), number('Goodput %'), number('Change, points'), number('95 % within')];
  return [section('what-ifs', 'What would change it', 'Change of goodput in percentage points, each with the same faults as the plan itself.',
                  el('div', {class: 'panel wide', role: 'list', 'aria-label': 'Change of goodput by what-if'}, ...rows),
                  table('What if', columns, life.what_ifs.map(({what_if, goodput, change}) =>
                    [what_if, points(goodput.mean), `${change.mean < 0 ? '−' : '+'}${points(Math.abs(change.mean))}`, `±${points(change.within_95, 3)}`])))];
}

function surface(life: Life) {
  if (life.surface === undefined) return [];
  const every = [...new Set(life.surface.points.map((point) => point.every_s))];
  const stalls = [...new Set(life.surface.points.map((point) => point.stall_s))];
  const at = (stall: number, interval: number | null) =>
    life.surface?.points.find((point) => point.stall_s === stall && point.every_s === interval)?.longest_stop_s ?? null;
  const columns = [text('Stall'), ...every.map((interval) => number(interval === null ? 'best interval' : `every ${format.seconds(interval)}`))];
  return [section('surface', `What ${points(life.surface.goodput, 0)} % takes`, 'The longest mean stop that still gives it, by stall and interval of checkpoints.',
                  table('Longest stop', columns, stalls.map((stall) => [format.seconds(stall), ...every.map((interval) => format.seconds(at(stall, interval)))])))];
}

export function lifePage(host: HTMLElement, life: Life) {
  const worst = life.parts.filter((part) => part.part !== 'compute').reduce((a, b) => (b.share > a.share ? b : a));
  const best = life.what_ifs.filter(({change}) => change.mean - change.within_95 > 0).sort((a, b) => b.change.mean - a.change.mean)[0];
  const findings = [
    `Goodput ${points(life.goodput.mean)} % ± ${points(life.goodput.within_95)}; 9 of 10 runs between ${points(life.goodput_p5)} and ${points(life.goodput_p95)} %.`,
    `Most goes to ${worst.part}: ${points(worst.share)} %, ${format.number(worst.seconds / 3600)} h.`,
    `${format.number(life.interruptions.mean)} interruptions; checkpoints every ${format.seconds(life.every_s)}, the best interval is ${format.seconds(life.best_every_s)}.`,
    ...(best === undefined ? [] : [`Of what was asked, ${best.what_if} gains most: +${points(best.change.mean)} points.`])];
  host.append(pageHeader('life', `${format.count(life.hosts)} hosts and ${format.count(life.spares)} spares, ${Number((life.span_s / 86400).toPrecision(6))} days, ${format.count(life.runs)} runs`, findings),
              section('waterfall', 'From all time to goodput', life.rates === undefined ? '' : `Rates: ${life.rates}.`, waterfall(life)),
              section('groups', 'What interrupts', '', table('What interrupts', [text('Group'), number('Times a run'), number('% of the time')],
                life.groups.map((group) => [group.group, group.interruptions.toFixed(1), points(group.cost)]))),
              ...whatIfs(life), ...surface(life));
}
