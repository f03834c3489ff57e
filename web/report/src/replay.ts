// A recorded day under other schemes: how long a step took in every interval, and what it cost.
import {el, number, pageHeader, section, table, text} from './dom';
import * as format from './format';
import {lines, redrawn, type Line} from './infer';
import {readTheme} from './theme';

interface Job {
  variant: string;
  job: string;
  healthy_s: number;
  mean_s: number;
  worst_s: number;
  lost_s: number;
  still_s: number;
  by_state_s: (number | null)[];  // null: is stalled
}
export interface Replay {
  records_used: number;
  records_ignored: number;
  states: string[][];
  intervals: {from: string; until: string; state: number}[];
  jobs: Job[];
}

const minutes = (seconds: number) => (seconds / 60).toFixed(1);
const time = (at: string) => at.replace('T', ' ').replace('Z', '');

// Steps of one job in milliseconds over hours: level in an interval, and 0 where it is stalled.
function steps(replay: Replay, job: Job): Line {
  const begin = Date.parse(replay.intervals[0]?.from ?? '');
  const hours = (at: string) => (Date.parse(at) - begin) / 3.6e6;
  const out: Line = {name: job.variant, x: [], y: []};
  for (const {from, until, state} of replay.intervals) {
    const height = (job.by_state_s[state] ?? 0) * 1000;
    // The end lies just before the next beginning: places on the axis are unique.
    out.x.push(hours(from), Math.max(hours(from), hours(until) - 1e-6));
    out.y.push(height, height);
  }
  return out;
}

function finding(job: Job) {
  const still = job.still_s === 0 ? '' : `, ${minutes(job.still_s)} of them standing still`;
  return `${job.variant}, ${job.job}: ${minutes(job.lost_s)} minutes lost${still}; steps of ${format.seconds(job.mean_s)} in the mean, ` +
    `${format.seconds(job.worst_s)} at worst, ${format.seconds(job.healthy_s)} on the healthy fabric.`;
}

export function replayPage(host: HTMLElement, replay: Replay) {
  const first = replay.intervals[0], last = replay.intervals.at(-1);
  const names = [...new Set(replay.jobs.map(({job}) => job))];
  const of = (name: string) => replay.jobs.filter(({job}) => job === name);
  const best = [...replay.jobs].sort((a, b) => a.mean_s - b.mean_s || a.lost_s - b.lost_s);
  const drawings = names.map((name) => ({name, panel: el('div', {class: 'panel wide'}), end: () => {}}));
  host.append(
    pageHeader('replay', `${time(first?.from ?? '')} to ${time(last?.until ?? '')}: ${format.count(replay.intervals.length)} intervals of ` +
         `${format.count(replay.states.length)} states; ${format.count(replay.records_used)} records used, ${format.count(replay.records_ignored)} of other kinds`,
               best.slice(0, 8).map(finding)),
    ...drawings.map(({name, panel}, at) => section(`steps-${at}`, `Steps of ${name}`, 'Time of a step in each interval; 0 where the job is stalled.', panel)),
    section('cost', 'What the day cost', 'Minutes are lost against the same variant on the healthy fabric.',
            table('Cost', [text('Variant'), text('Job'), number('Healthy'), number('Mean'), number('Worst'), number('Minutes lost'), number('Of them still')],
                  replay.jobs.map((job) => [job.variant, job.job, format.seconds(job.healthy_s), format.seconds(job.mean_s), format.seconds(job.worst_s),
                                            minutes(job.lost_s), minutes(job.still_s)]))),
    section('intervals', 'Intervals', '',
            table('Intervals', [text('From'), number('Hours'), text('Not well'), ...replay.jobs.map(({variant, job}) => number(`${variant} ${job}`))],
                  replay.intervals.map(({from, until, state}) =>
                    [time(from), ((Date.parse(until) - Date.parse(from)) / 3.6e6).toFixed(2), replay.states[state]?.join(', ') || format.none,
                     ...replay.jobs.map(({by_state_s}) => (by_state_s[state] == null ? 'still' : format.seconds(by_state_s[state] ?? null)))]))));
  redrawn(() => {
    for (const drawing of drawings) {
      drawing.end();
      const all = of(drawing.name).map((job) => steps(replay, job));
      drawing.end = lines(drawing.panel, `Steps of ${drawing.name}, ${all.length} lines`, all, ['hours', 'ms a step'],
                          Math.max(...all.flatMap(({y}) => y)), readTheme());
    }
  });
}
