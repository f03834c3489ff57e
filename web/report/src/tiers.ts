// Distribution of link load, one histogram per tier: the selected variant over the first one.
import uPlot from 'uplot';
import {tierOf, tiersOf, type Named, type Tier, type Variant} from './data';
import {el} from './dom';
import * as format from './format';
import {axis, plot} from './plot';
import type {Theme} from './theme';

export interface Choice {
  selected: Named<Variant>;
  first: Named<Variant>;
}

// Percent of the links in each bar, which takes `step` bins of the report.
const shares = (tier: Tier, step: number) =>
  Array.from({length: Math.ceil(tier.histogram.length / step)}, (_, bar) =>
    tier.links === 0 ? 0
      : tier.histogram.slice(bar * step, (bar + 1) * step).reduce((sum, n) => sum + n, 0) / tier.links * 100);

export function tierSummary(tier: Tier): string {
  return [`${format.count(tier.links)} links`, `mean ${format.percent(tier.mean_load)}`,
          `max ${format.percent(tier.max_load)}`, `MMR ${format.ratio(tier.mmr)}`].join(' · ');
}

// The axis, in percent, ends behind the highest load of the tier in either variant, and has up to 20
// bars of whole bins.
function axisOf(name: string, choice: Choice, bins: number) {
  const most = [choice.selected, choice.first].map((one) => tierOf(one.value, name)?.max_load ?? 0);
  const end = [2, 5, 10, 20, 50, 100].find((percent) => Math.max(0, ...most) * 100 < percent) ?? 100;
  return {end, step: Math.max(1, Math.ceil(bins * end / 2000))};
}

function tip(name: string, choice: Choice, wide: number, selected: number[], first: number[] | undefined) {
  return (x: number) => {
    const bin = Math.min(Math.max(Math.floor(x / wide), 0), selected.length - 1);
    const edge = (at: number) => String(+(at * wide).toFixed(2));
    const line = (variant: string, values: number[], kind: string) =>
      el('div', {class: `key ${kind}`}, `${variant}: ${(values[bin] ?? 0).toFixed(1)} % of links`);
    return [el('div', {}, `${format.tierName(name)}, load ${edge(bin)}–${edge(bin + 1)} %`),
            line(choice.selected.name, selected, 'selected'),
            ...(first === undefined ? [] : [line(choice.first.name, first, 'first')])];
  };
}

function histogram(host: HTMLElement, tier: Named<Tier>, choice: Choice, theme: Theme) {
  const bins = tier.value.histogram.length, {end, step} = axisOf(tier.name, choice, bins);
  const wide = step * 100 / bins;
  const selected = shares(tier.value, step);
  const compare = choice.first.name !== choice.selected.name;
  const firstTier = compare ? tierOf(choice.first.value, tier.name) : undefined;
  const first = firstTier === undefined ? undefined : shares(firstTier, step);
  const left = Array.from({length: selected.length + 1}, (_, bar) => bar * wide);
  const close = (values: number[]) => [...values, values[values.length - 1] ?? 0];
  const steps = uPlot.paths.stepped?.({align: 1});
  const series: uPlot.Series[] =
    [{}, {stroke: theme.selected, fill: theme.selectedFill, width: 1.5, paths: steps,
          points: {show: false}}];
  if (first !== undefined) {
    series.push({stroke: theme.first, width: 2, dash: [5, 3], paths: steps, points: {show: false}});
  }
  const top = Math.max(...selected, ...(first ?? []));
  const marks = format.ticks(top, 4);
  return plot(host, {
    label: `Load of ${tier.name} links under ${choice.selected.name}: ${tierSummary(tier.value)}`,
    height: 190,
    data: [left, close(selected), ...(first === undefined ? [] : [close(first)])],
    tip: tip(tier.name, choice, wide, selected, first),
    options: {
      series,
      scales: {x: {time: false, range: [0, end]}, y: {range: [0, marks[marks.length - 1] ?? 1]}},
      axes: [axis(theme, 'Link load (% of capacity)', {splits: format.ticks(end, 5), size: 30}),
             axis(theme, 'Links (%)', {splits: marks, size: 40})],
    },
  });
}

// Appends to `host`; the result ends the charts.
export function tierPanels(host: HTMLElement, choice: Choice, theme: Theme): () => void {
  const grid = el('div', {class: 'panels'});
  host.append(grid);
  const ends = tiersOf(choice.selected.value).map((tier) => {
    const figure = el('figure', {class: 'panel'},
                      el('figcaption', {}, el('strong', {}, format.tierName(tier.name)),
                         el('small', {}, tierSummary(tier.value))));
    grid.append(figure);
    return histogram(figure, tier, choice, theme);
  });
  return () => ends.forEach((end) => end());
}
