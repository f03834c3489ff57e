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

const shares = (tier: Tier | undefined, bins: number) =>
  Array.from({length: bins}, (_, bin) =>
    tier === undefined || tier.links === 0 ? 0 : ((tier.histogram[bin] ?? 0) / tier.links) * 100);

export function tierSummary(tier: Tier): string {
  return [`${format.count(tier.links)} links`, `mean ${format.percent(tier.mean_load)}`,
          `max ${format.percent(tier.max_load)}`, `MMR ${format.ratio(tier.mmr)}`].join(' · ');
}

// The axis ends behind the highest load of the tier in either variant, at a multiple of ten.
const axisEnd = (name: string, choice: Choice) => {
  const most = [choice.selected, choice.first].map((one) => tierOf(one.value, name)?.max_load ?? 0);
  return Math.min(100, Math.max(10, Math.ceil(Math.max(0, ...most) * 10 + 1e-9) * 10));
};

function tip(name: string, choice: Choice, selected: number[], first: number[] | undefined) {
  return (x: number) => {
    const bins = selected.length;
    const bin = Math.min(Math.max(Math.floor((x / 100) * bins), 0), bins - 1);
    const edge = (at: number) => ((at * 100) / bins).toFixed(0);
    const line = (variant: string, values: number[], kind: string) =>
      el('div', {class: `key ${kind}`}, `${variant}: ${(values[bin] ?? 0).toFixed(1)} % of links`);
    return [el('div', {}, `${format.tierName(name)}, load ${edge(bin)}–${edge(bin + 1)} %`),
            line(choice.selected.name, selected, 'selected'),
            ...(first === undefined ? [] : [line(choice.first.name, first, 'first')])];
  };
}

function histogram(host: HTMLElement, tier: Named<Tier>, choice: Choice, theme: Theme) {
  const bins = tier.value.histogram.length, end = axisEnd(tier.name, choice);
  const selected = shares(tier.value, bins);
  const compare = choice.first.name !== choice.selected.name;
  const firstTier = compare ? tierOf(choice.first.value, tier.name) : undefined;
  const first = firstTier === undefined ? undefined : shares(firstTier, bins);
  const left = Array.from({length: bins + 1}, (_, bin) => (bin * 100) / bins);
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
    tip: tip(tier.name, choice, selected, first),
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
