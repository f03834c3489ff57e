// A series and its forecast; and auto-scalers on a day's demand.
import uPlot from 'uplot';
import {el, number, pageHeader, section, swatch, table, text} from './dom';
import * as format from './format';
import {lines, redrawn, type Line} from './infer';
import {axis, plot} from './plot';
import {readTheme, type Theme} from './theme';

export interface Forecast {
  gaps: number;
  outages: number;
  event_values: number;
  hold_outs: number;
  seasons: number[];
  weights: {forecaster: string; weight: number; error: number}[];
  forecast: {time: string; forecast: number; low: number; high: number}[];
}
export interface History {
  step_s: number;
  values: {time: string; value: number | null; event: string}[];
}
export interface Scaled {
  from: string;
  steps: number;
  gaps: number;
  outages: number;
  policies: {policy: string; violated: number; replica_hours: number; peak_replicas: number}[];
  at_equal_violations: {violated: number; replica_hours: Record<string, number | null>}[];
}
export interface Columns {
  hours_each: number;
  policies: {policy: string; demand: number[]; capacity: number[]}[];
}

const when = (time: string) => time.replace('T', ' ').replace('Z', '');

// What was measured, then what is expected, with the interval behind it.
function bands(host: HTMLElement, forecast: Forecast, history: History, theme: Theme) {
  const rows = [...history.values.map(({time}) => time), ...forecast.forecast.map(({time}) => time)];
  const past = history.values.length, none = forecast.forecast.map(() => null);
  const before: null[] = history.values.map(() => null);
  const series = [[...history.values.map(({value}) => value), ...none], [...before, ...forecast.forecast.map((one) => one.forecast)],
                  [...before, ...forecast.forecast.map(({low}) => low)], [...before, ...forecast.forecast.map(({high}) => high)]];
  const all = series.flat().filter((value) => value !== null);
  const [least, most] = [Math.min(0, ...all), Math.max(0, ...all)];
  const hidden = {stroke: 'transparent', width: 0, points: {show: false}};
  const end = plot(host, {
    label: `${past} values and a forecast of ${forecast.forecast.length}`,
    height: 360,
    data: [rows.map((time) => Date.parse(time) / 1000), ...series] as uPlot.AlignedData,
    tip: (_, at) => {
      const ahead = forecast.forecast[at - past], one = history.values[at];
      const said = ahead === undefined ? `${format.number(one?.value ?? null)}${(one?.event ?? '') === '' ? '' : `, ${one?.event ?? ''}`}`
        : `${format.number(ahead.forecast)}, from ${format.number(ahead.low)} to ${format.number(ahead.high)}`;
      return [el('div', {}, when(rows[at] ?? '')), el('div', {}, said)];
    },
    options: {
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      series: [{}, {stroke: theme.selected, width: 1.5, points: {show: false}}, {stroke: theme.first, width: 2, points: {show: false}}, hidden, hidden],
      bands: [{series: [4, 3], fill: `${theme.first}40`}],
      scales: {x: {time: true}, y: {range: [least, most * 1.05]}},
      axes: [axis(theme, 'UTC', {size: 40, space: 80}), axis(theme, '', {size: 60})],
    } as Partial<uPlot.Options>,
  });
  const legend = el('p', {class: 'legend'}, swatch('measured', theme.selected), swatch('forecast', theme.first), swatch('interval', `${theme.first}40`));
  host.append(legend);
  return () => {
    end();
    legend.remove();
  };
}

export function forecastPage(host: HTMLElement, forecast: Forecast, history: History) {
  const first = forecast.forecast[0], last = forecast.forecast.at(-1);
  const highest = forecast.forecast.reduce((a, b) => (b.forecast > a.forecast ? b : a), first ?? {time: '', forecast: 0, low: 0, high: 0});
  const best = forecast.weights[0];
  const findings = [
    `Highest on ${when(highest.time)}: ${format.number(highest.forecast)}, from ${format.number(highest.low)} to ${format.number(highest.high)}.`,
    `${forecast.gaps} gaps filled, ${forecast.event_values} values of events and ${forecast.outages} of outages set aside.`,
    ...(best === undefined ? [] : [`A mean of ${forecast.weights.length} forecasters by their errors on ${forecast.hold_outs} hold-outs; ${format.percent(best.weight)} of it ${best.forecaster}.`])];
  const panel = el('div', {class: 'panel wide'});
  host.append(
    pageHeader('forecast', `${format.count(forecast.forecast.length)} steps of ${format.span(history.step_s)}, ${when(first?.time ?? '')} to ${when(last?.time ?? '')}; ` +
      `seasons of ${forecast.seasons.length === 0 ? 'no' : forecast.seasons.join(', ')} steps`, findings),
    section('series', 'The series and what comes', '', panel),
    section('weights', 'Who forecasts', 'Weights by the mean absolute error on hold-outs of the series itself.',
            table('Forecasters', [text('Forecaster'), number('Weight'), number('Error')],
                  forecast.weights.map((one) => [one.forecaster, format.percent(one.weight), format.number(one.error)]))),
    section('values', 'Values', '', table('Forecast', [text('Time'), number('Forecast'), number('Low'), number('High')],
      forecast.forecast.slice(0, 500).map((one) => [when(one.time), format.number(one.forecast), format.number(one.low), format.number(one.high)])),
            el('p', {class: 'lead'}, forecast.forecast.length <= 500 ? '' : `The 500 first of ${format.count(forecast.forecast.length)}.`)));
  let end = () => {};
  redrawn(() => {
    end();
    end = bands(panel, forecast, history, readTheme());
  });
}

const kindOf = (policy: string) => policy.split(' ')[0] ?? policy;
const nameOf = (kind: string) => (kind === 'reactive' ? 'reactive (HPA)' : kind);
const [leastShare, mostShare] = [0.0005, 0.06];  // of violations: beside them curves go up, or nobody runs a service

// One curve a kind, by what it violates.
function curves(scaled: Scaled): Line[] {
  const kinds = [...new Set(scaled.policies.map(({policy}) => kindOf(policy)))];
  return kinds.map((kind) => {
    const points = scaled.policies.filter(({policy, violated}) => kindOf(policy) === kind && violated >= leastShare && violated <= mostShare)
      .sort((a, b) => a.violated - b.violated || b.replica_hours - a.replica_hours);
    return {name: nameOf(kind), x: points.map(({violated}) => violated * 100), y: points.map(({replica_hours}) => replica_hours)};
  }).filter(({x}) => x.length > 0);
}

export function scalePage(host: HTMLElement, scaled: Scaled, columns: Columns) {
  const ratio = (hours: Record<string, number | null>, kind: string) => {
    const [mine, reactive] = [hours[kind] ?? null, hours['reactive'] ?? null];
    return mine === null || reactive === null || reactive === 0 ? null : mine / reactive;
  };
  const kinds = Object.keys(scaled.at_equal_violations[0]?.replica_hours ?? {});
  const findings = scaled.at_equal_violations.map(({violated, replica_hours}) => `At ${format.plain(violated * 100)} % violated: ` +
    kinds.map((kind) => `${nameOf(kind)} ${format.number(replica_hours[kind] ?? null)} replica-hours` +
      (kind === 'reactive' || ratio(replica_hours, kind) === null ? '' : ` (${ratio(replica_hours, kind)?.toFixed(3) ?? ''} of it)`)).join(', ') + '.');
  const curve = el('div', {class: 'panel wide'});
  const days = columns.policies.map((one) => ({one, panel: el('div', {class: 'panel wide'}), end: () => {}}));
  host.append(
    pageHeader('scale', `${format.count(scaled.steps)} steps scored from ${when(scaled.from)} on; ${scaled.gaps} gaps and ${scaled.outages} values of outages taken as the value before`,
           findings.length > 0 ? findings : scaled.policies.slice(0, 8).map((one) =>
             `${one.policy}: ${format.percent(one.violated)} violated, ${format.number(one.replica_hours)} replica-hours.`)),
    ...(kinds.length === 0 ? [] : [section('curves', 'Cost against violations',
      'Every setting of each kind: what it costs, and the share of demand that came while replicas were above the limit.', curve),
      section('equal', 'At equal violations', '', table('Replica-hours', [number('Violated'), ...kinds.map((kind) => number(nameOf(kind))), ...kinds.slice(1).map((kind) => number(`${kind} of reactive`))],
        scaled.at_equal_violations.map(({violated, replica_hours}) => [format.percent(violated), ...kinds.map((kind) => format.number(replica_hours[kind] ?? null)),
          ...kinds.slice(1).map((kind) => ratio(replica_hours, kind)?.toFixed(3) ?? format.none)])))]),
    ...days.map(({one, panel}, at) => section(`days-${at}`, one.policy, 'Demand, and what replicas serve below the limit.', panel)),
    section('policies', 'Every policy', '', table('Policies', [text('Policy'), number('Violated'), number('Replica-hours'), number('Most replicas')],
      scaled.policies.map((one) => [one.policy, `${(one.violated * 100).toFixed(3)} %`, format.number(one.replica_hours), format.count(one.peak_replicas)]))));
  let endCurve = () => {};
  redrawn(() => {
    const theme = readTheme();
    if (kinds.length > 0) {
      endCurve();
      const all = curves(scaled);
      const heights = all.flatMap(({y}) => y);
      const [low, high] = [Math.min(...heights), Math.max(...heights)];
      const unit = 10 ** Math.floor(Math.log10(Math.max(high - low, 1)));
      endCurve = lines(curve, `Replica-hours by violations, ${all.length} lines`, all, ['% violated', 'replica-hours'], high, theme, Math.floor(low / unit) * unit);
    }
    for (const day of days) {
      day.end();
      const x = day.one.demand.map((_, at) => at * columns.hours_each);
      day.end = lines(day.panel, `Demand and capacity under ${day.one.policy}, 2 lines`,
                      [{name: 'capacity', x, y: day.one.capacity}, {name: 'demand', x, y: day.one.demand}], ['hours', 'demand'],
                      Math.max(...day.one.demand, ...day.one.capacity), theme);
    }
  });
}
