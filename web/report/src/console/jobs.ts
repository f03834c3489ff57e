// The running jobs over the fabric: in which racks they are, and what is wrong there.
import {el, number, section, text} from '../dom';
import * as format from '../format';
import {ask, type Case, type Fabric, type Jobs} from './api';
import type {Known} from './live';
import {matrix} from './map';
import {legend, Page} from './network';
import {age, byOpened, cards, caseLink, label, nodesOf, then, time} from './ui';

const rowsMax = 200;
const casesShown = 4;

type Job = Jobs['items'][number];

// What is wrong with a part: an open case, or that it is out of service.
interface Trouble {
  nodes: string[];
  words: string;
  of?: Case;
}

// The names of a host list: "host:[8-9,12],nic:3".
export function namesOf(list: string) {
  return [...list.matchAll(/([^,[]+)(?:\[([^\]]*)\])?/g)].flatMap(([, stem = '', inside]) =>
    inside === undefined ? [stem] : inside.split(',').flatMap((range) => {
      const [first = '', last = first] = range.split('-');
      return Array.from({length: Number(last) - Number(first) + 1}, (_, i) => `${stem}${Number(first) + i}`);
    }));
}

// Where troubles are: at a host, in a rack, or above all racks, in every job's way.
class Places {
  private readonly rackOf = new Map<string, string>();
  private readonly switches = new Set<string>();
  private readonly of = new Map<string, Trouble[]>();  // by rack, or by node of a host
  private readonly atHost = new Set<Trouble>();
  readonly above: Trouble[] = [];

  constructor(fabric: Fabric, troubles: Trouble[]) {
    for (const tier of fabric.tiers) {
      tier.row_names.forEach((name, at) => { if (tier.racks[at] !== '') this.rackOf.set(name, tier.racks[at] ?? ''); });
      for (const name of [...tier.row_names, ...tier.column_names]) this.switches.add(name);
    }
    for (const trouble of troubles) {
      const ends = trouble.nodes.filter((name) => !this.switches.has(name));
      const racks = trouble.nodes.flatMap((name) => this.rackOf.get(name) ?? []);
      const keys = ends.length > 0 ? ends : racks;
      if (keys.length === 0) this.above.push(trouble);
      if (ends.length > 0) this.atHost.add(trouble);
      for (const key of new Set(keys)) this.of.set(key, [...this.of.get(key) ?? [], trouble]);
    }
  }
  at({rack, parts}: Job['racks'][number]) {
    return [rack, ...namesOf(parts)].flatMap((key) => this.of.get(key) ?? []);
  }
  // Each once; those of hosts first, for whom there is no other way.
  ordered(wrong: Trouble[]) {
    return [...new Set(wrong)].sort((a, b) => Number(this.atHost.has(b)) - Number(this.atHost.has(a)));
  }
}

export class JobPage extends Page<[Fabric, Jobs]> {
  private fabric: Promise<Fabric> | undefined;

  constructor(live: Known) {
    super('Jobs', 'The running jobs, as the scheduler lists them, over the racks of the fabric.', live);
  }
  protected async get(): Promise<[Fabric, Jobs]> {
    this.fabric ??= ask<Fabric>('/v1/fabric');
    return [await this.fabric, await ask<Jobs>('/v1/jobs')];
  }

  private troubles(): Trouble[] {
    const cases = [...this.live.cases.values()].sort(byOpened).map((of): Trouble =>
      ({nodes: nodesOf(of.cause.entity), words: `${label(of.cause.kind)} at ${of.cause.entity}`, of}));
    const out = (this.live.capacity?.out ?? []).map((part): Trouble => ({nodes: nodesOf(part), words: `${part} out of service`}));
    return [...cases, ...out];
  }

  protected show([fabric, jobs]: [Fabric, Jobs]) {
    if (jobs.from === null) {
      this.body.replaceChildren(el('p', {class: 'lead'}, 'The service is not told which jobs run: its configuration has no ', el('code', {}, 'jobs:'), '.'));
      return;
    }
    const places = new Places(fabric, this.troubles());
    const rows = jobs.items.map((job) => {
      const at = new Map(job.racks.map((of) => [of.rack, {hosts: of.host_count, wrong: places.ordered(places.at(of))}]));
      return {job, at, wrong: places.ordered([...at.values()].flatMap(({wrong}) => wrong))};
    }).sort((a, b) => b.wrong.length - a.wrong.length || b.job.host_count - a.job.host_count);
    const shown = rows.slice(0, rowsMax);
    const racks = [...new Set(shown.flatMap(({at}) => [...at.keys()]))]
      .sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
    const map = matrix({rows: shown.map(({job}) => `${job.id} ${job.name}`), columns: racks.map((rack) => (rack === '' ? 'no rack' : rack)),
      label: 'Jobs (rows) by rack', at: (row, column) => {
        const found = shown[row]?.at.get(racks[column] ?? '');
        if (found === undefined) return undefined;
        const first = found.wrong.find(({of}) => of !== undefined)?.of;
        const state = first !== undefined ? 'suspected' : found.wrong.length > 0 ? 'out' : 'ok';
        return {colour: `--state-${state}`, words: [`${format.count(found.hosts)} host${found.hosts === 1 ? '' : 's'}`,
                ...found.wrong.slice(0, casesShown).map(({words}) => words)].join('; '),
                ...(first === undefined ? {} : {to: then(`#/case/${encodeURIComponent(first.id)}`)})};
      }});
    const list = (wrong: Trouble[]) => el('span', {}, ...wrong.slice(0, casesShown).flatMap(({of, words}, i) =>
      [i > 0 ? ', ' : '', of === undefined ? words : caseLink(of.id, words)]),
      wrong.length > casesShown ? ` and ${format.count(wrong.length - casesShown)} more` : '');
    const strangers = rows.filter(({job}) => job.unknown_nodes !== undefined);
    this.body.replaceChildren(
      el('p', {class: jobs.stale ? 'lead bad' : 'lead'}, `${format.count(rows.length)} job${rows.length === 1 ? '' : 's'} by ${label(jobs.from)}, `,
        ...(jobs.read === null ? ['which has not answered yet'] : ['read at ', time(jobs.read), ` (${age(jobs.read)} ago)`]),
        jobs.stale ? ': too old to be relied on' : '', jobs.error === null ? '.' : `. ${jobs.error}`),
      rows.length === 0 ? '' : section('racks', 'Jobs by rack', rows.length > rowsMax ? `${rowsMax} of ${format.count(rows.length)}, those in trouble first.` : '',
        legend(['ok', 'nothing wrong'], ['suspected', 'open case at its hosts or in its rack'], ['out', 'a part out of service']), map.root),
      places.above.length === 0 ? '' : section('above', 'Above the racks', 'Open cases and parts out of service that may be in the way of every job.',
        el('p', {}, list(places.above))),
      rows.length === 0 ? '' : section('list', 'Jobs', '', cards('Running jobs', [text('Job'), text('User'), text('Since'), number('Hosts'), number('Racks'), text('In trouble')],
        shown.map(({job, at, wrong}) => [`${job.id} ${job.name}`, job.user, job.since === null ? format.none : time(job.since),
          format.count(job.host_count), format.count(at.size), wrong.length === 0 ? format.none : list(wrong)]))),
      strangers.length === 0 ? '' : section('strangers', 'Nodes that the fabric does not have', '',
        cards('By job', [text('Job'), text('Nodes')], strangers.map(({job}) => [`${job.id} ${job.name}`, job.unknown_nodes ?? '']))));
  }
}
