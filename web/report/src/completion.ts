// Flow-completion times as a cumulative distribution: all variants, two of them in colour.
import uPlot from 'uplot';
import type {Completion, Named, Variant} from './data';
import {el} from './dom';
import * as format from './format';
import {axis, plot} from './plot';
import type {Theme} from './theme';
import type {Choice} from './tiers';

type Points = Completion['quantiles'];

// Time by which `share` of the flows have finished, between the given points.
export function quantile(points: Points, share: number): number | null {
  const at = points.findIndex((point) => point[0] >= share);
  const [high, low] = [points[at], points[at - 1]];
  if (high === undefined) return null;
  if (low === undefined || high[0] === low[0]) return high[1];
  return low[1] + ((share - low[0]) / (high[0] - low[0])) * (high[1] - low[1]);
}

function shareBy(points: Points, time: number): number {
  const at = points.findIndex((point) => point[1] > time);
  const [high, low] = [points[at], points[at - 1]];
  if (high === undefined) return points.length > 0 ? 1 : 0;
  if (low === undefined) return 0;
  return low[0] + ((time - low[1]) / (high[1] - low[1])) * (high[0] - low[0]);
}

export function completionSummary(flows: Completion): string {
  const at = (share: number) => format.seconds(quantile(flows.quantiles, share));
  const parts = [`${format.count(flows.finished)} flows`, `mean ${format.seconds(flows.mean_s)}`,
                 `p50 ${at(0.5)}`, `p99 ${at(0.99)}`, `max ${at(1)}`];
  if (flows.unfinished > 0) parts.push(`${format.count(flows.unfinished)} unfinished`);
  return parts.join(' · ');
}

// Later entries are drawn on top: the selected variant last.
function inDrawingOrder(variants: Named<Variant>[], choice: Choice): Named<Variant>[] {
  const rank = (name: string) =>
    name === choice.selected.name ? 2 : name === choice.first.name ? 1 : 0;
  return [...variants].sort((a, b) => rank(a.name) - rank(b.name))
    .filter((variant) => variant.value.flow_completion.quantiles.length > 0);
}

function seriesOf(name: string, choice: Choice, theme: Theme): uPlot.Series {
  const points = {show: false};
  if (name === choice.selected.name) return {stroke: theme.selected, width: 2.5, points};
  if (name === choice.first.name) return {stroke: theme.first, width: 2, dash: [6, 4], points};
  return {stroke: theme.other, width: 1, points};
}

function timeAxis(theme: Theme, max: number, log: boolean): uPlot.Axis {
  const unit = max < 1e-3 ? {size: 1e-6, name: 'µs'} : max < 1 ? {size: 1e-3, name: 'ms'}
                                                               : {size: 1, name: 's'};
  const label = (value: number | null) =>
    value === null ? '' : String(Number((value / unit.size).toPrecision(6)));
  return axis(theme, `Flow-completion time (${unit.name}${log ? ', logarithmic' : ''})`,
              {values: (_, splits) => splits.map(label), size: 30, space: 80});
}

export function completionChart(host: HTMLElement, variants: Named<Variant>[], choice: Choice,
                                theme: Theme): () => void {
  const drawn = inDrawingOrder(variants, choice);
  const lists = drawn.map((variant) => variant.value.flow_completion.quantiles);
  const times = lists.flat().map((point) => point[1]).filter((time) => time > 0);
  if (times.length === 0) {
    host.append(el('p', {class: 'lead'}, 'No flow finished.'));
    return () => {};
  }
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const log = high / low > 50;
  const step = (points: Points): uPlot.AlignedData =>
    [points.map((point) => point[1]), points.map((point) => point[0] * 100)];
  const named = choice.selected.name === choice.first.name ? [choice.selected]
                                                           : [choice.selected, choice.first];
  return plot(host, {
    label: `Flow completion under ${choice.selected.name}: ` +
           completionSummary(choice.selected.value.flow_completion),
    height: 280,
    data: uPlot.join(lists.map(step)),
    tip: (time) => [
      el('div', {}, `within ${format.seconds(time)}`),
      ...named.map((v) => el('div', {class: `key ${v === choice.selected ? 'selected' : 'first'}`},
        `${v.name}: ${(shareBy(v.value.flow_completion.quantiles, time) * 100).toFixed(1)} %`)),
    ],
    options: {
      series: [{}, ...drawn.map((variant) => seriesOf(variant.name, choice, theme))],
      scales: {
        x: log ? {time: false, distr: 3} : {time: false, range: [0, high * 1.02]},
        y: {range: [0, 100]},
      },
      axes: [timeAxis(theme, high, log),
             axis(theme, 'Flows finished (%)', {splits: [0, 25, 50, 75, 100], size: 40})],
    },
  });
}
