// Training jobs of one variant: facts, timeline, and where bytes and waiting went.
import {distances, isTraining, jobsOf, timelinesOf, type Distances, type Named, type Timelines,
        type TrainingJob, type Variant} from './data';
import {el, number, table, text} from './dom';
import * as format from './format';
import type {Theme} from './theme';
import {timelineChart} from './timeline';

const upper = (dimension: string) => (dimension === 'other' ? dimension : dimension.toUpperCase());

// All of a few steps; of many, the first ones and the last.
function stepTimes(times: (number | null)[]): string {
  const texts = times.map(format.seconds);
  if (texts.length < 2) return format.none;
  if (texts.length <= 4) return texts.join(', ');
  return `${texts.slice(0, 2).join(', ')} … ${texts.at(-1)} (${format.count(texts.length)} steps)`;
}

function facts(job: TrainingJob) {
  const known: [string, string][] = [
    ['Step times', stepTimes(job.step_times_s)],
    ['Roofline', [format.seconds(job.roofline_s), job.roofline_resource]
      .filter((part) => part !== '').join(', ')],
    ['Memory of the fullest GPU', format.bytes(job.memory_bytes)],
    ['Start to first step', format.seconds(job.start_s)],
    ['Communicator bootstrap', format.seconds(job.bootstrap_s)],
    ['Input of a step', format.seconds(job.ingest_s)],
    ['Wait for input', format.seconds(job.ingest_stall_s)],
    ['Checkpoint', format.seconds(job.checkpoint_s)],
    ['Wait for a checkpoint', format.seconds(job.checkpoint_stall_s)]];
  const shown = known.filter((fact) => fact[1] !== format.none);
  if (shown.length === 0) return undefined;
  return el('dl', {class: 'facts'}, ...shown.map(([term, value]) =>
    el('div', {}, el('dt', {}, term), el('dd', {}, value))));
}

const sum = (values: (number | null)[]) => values.reduce<number>((all, v) => all + (v ?? 0), 0);

function byteTable(job: TrainingJob) {
  const rows = Object.entries(job.bytes)
    .filter(([, bytes]) => sum(distances.map((d) => bytes[d])) > 0);
  if (rows.length === 0) return undefined;
  const line = (name: string, of: (d: keyof Distances) => number | null) =>
    [name, ...distances.map((d) => of(d)), sum(distances.map(of))]
      .map((cell) => (typeof cell === 'string' ? cell : cell === 0 ? format.none
        : format.bytes(cell)));
  return table('Bytes of a step by distance',
               [text('For'), number('In host'), number('In rack'), number('In zone'),
                number('Cross-zone'), number('Total')],
               [...rows.map(([name, bytes]) => line(upper(name), (d) => bytes[d])),
                line('All', (d) => sum(rows.map(([, bytes]) => bytes[d])))]);
}

function waitTable(job: TrainingJob) {
  if (job.waits.length === 0) return undefined;
  return table('Ranks that others waited for',
               [text('Rank'), text('In'), number('GPU-seconds')],
               job.waits.map((wait) =>
                 [wait.rank, upper(wait.dimension), format.number(wait.seconds)]));
}

function stragglerTable(job: TrainingJob) {
  if (job.stragglers.length === 0) return undefined;
  return table('Ranks that computed longer than others of their role',
               [text('Rank'), number('Times the median')],
               job.stragglers.map((slow) => [slow.rank, format.number(slow.factor)]));
}

function linkTable(job: TrainingJob) {
  if (job.hottest_links.length === 0) return undefined;
  const flows = (link: TrainingJob['hottest_links'][number]) => el('div', {}, ...link.flows.map(
    (flow) => el('div', {class: `key part-${flow.dimension}`},
                 `${flow.job} ${upper(flow.dimension)}, ${format.bytes(flow.bytes)}, ` +
                   `e.g. ${flow.from} → ${flow.to}`)));
  return table('Hottest links',
               [text('Link'), number('Load'), number('Bytes'), text('Flows')],
               job.hottest_links.map((link) =>
                 [format.tierName(link.link), format.percent(link.load), format.bytes(link.bytes),
                  flows(link)]));
}

// Appends to `host`; the result ends the charts.
export function steps(host: HTMLElement, variant: Named<Variant>, timelines: Timelines,
                      theme: Theme): () => void {
  const ends = jobsOf(variant.value).flatMap(({name, value}) => {
    if (!isTraining(value)) return [];
    const part = el('div', {class: 'step'}, el('h3', {}, `${name}: the last step`), facts(value));
    host.append(part);
    const drawn = timelinesOf(timelines, variant.name).filter((timeline) => timeline.job === name)
      .map((timeline) => timelineChart(part, timeline, theme));
    const pair = [byteTable(value), waitTable(value), stragglerTable(value)].filter((table) => table !== undefined);
    part.append(el('div', {class: 'panels tables'}, ...pair), linkTable(value) ?? '');
    return drawn;
  });
  return () => ends.forEach((end) => end());
}
