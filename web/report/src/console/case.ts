// One case: what is wrong, who said so and in which words, what is done about it.
import {el, section, table, text, type Column} from '../dom';
import * as format from '../format';
import {traceSections, type JobTrace as JobPicture} from '../colltrace';
import {ask, part, send, type Audit, type Case, type Fabric, type JobEffects, type JobTrace, type Repair, type Said} from './api';
import type {Known} from './live';
import {neighbourhood} from './map';
import {age, badge, button, caseLink, cards, Commands, isPast, label, nodesOf, redraw, serviceNow, severity, svg, texts, then, time} from './ui';

const pageRows = 100;

const relations: Record<string, string> = {
  'itself': 'said of the root', 'end of link': 'said at an end of the cable', 'port of': 'a port of the root',
  'session over': 'a session that runs over the root', 'probe over': 'a probe that crossed the root',
  'NIC below': 'a NIC that hangs on the root', 'host below': 'a host that hangs on the root',
  'device inside': 'a device that stands inside the root', 'part of': 'a part of the root',
  'same change': 'the change, or a session that it took', 'pauses towards': 'a queue or pause on the way to the root',
  'learned': 'history says that one leads to the other'};

interface Line {
  id: string;
  relation: string;
  source: string;
  entity: string;
  kind: string;
  at: string;
  words: string;
}

function lineOf(id: string, relation: string, said: Said | undefined): Line {
  const of = said?.record ?? {};
  const raw = said?.feed === 'syslog' ? said.line.replace(/^@\S+ \S+ /, '') : undefined;
  const attrs = Object.entries(of.attrs ?? {}).map(([key, value]) => `${key} ${value}`).join(', ');
  return {id, relation, source: of.source ?? said?.feed ?? 'not kept', entity: of.entity ?? '',
          kind: of.kind ?? '', at: Number.isNaN(Date.parse(of.t ?? '')) ? said?.received ?? '' : of.t ?? '',
          words: raw ?? of.attrs?.['message'] ?? (attrs !== '' ? attrs : said === undefined ? 'no longer kept'
            : `${label(of.kind ?? '')}${of.value === undefined ? '' : ` ${of.value}`}`)};
}

// Marks by time, a lane for each source.
function timeline(lines: Line[]) {
  const dated = lines.filter((line) => line.at !== '');
  const sources = [...new Set(dated.map((line) => line.source))].sort();
  const times = dated.map((line) => Date.parse(line.at));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  if (dated.length === 0) return undefined;
  const [left, width, lane] = [90, 900, 26];
  const x = (at: number) => left + ((at - from) / Math.max(to - from, 1)) * (width - left - 14) + 4;
  const rows = sources.flatMap((source, row) => [
    svg('text', {x: 0, y: row * lane + 17}, document.createTextNode(source)),
    svg('line', {x1: left, x2: width, y1: row * lane + 13, y2: row * lane + 13}),
    ...dated.filter((line) => line.source === source).map((line) =>
      svg('circle', {cx: x(Date.parse(line.at)), cy: row * lane + 13, r: 4},
          svg('title', {}, document.createTextNode(`${line.at} ${line.entity} ${line.words}`))))]);
  return el('figure', {class: 'lanes'},
    svg('svg', {viewBox: `0 0 ${width} ${sources.length * lane}`, role: 'img',
                'aria-label': `${dated.length} records of ${sources.join(', ')}`}, ...rows),
    el('figcaption', {}, time(new Date(from).toISOString()), ` and ${format.seconds((to - from) / 1000)} after`));
}

function facts(rows: [string, Node | string | undefined][]) {
  return el('dl', {class: 'case-facts'}, ...rows.filter(([, value]) => value !== undefined)
    .map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
}

function repairFacts(repair: Repair) {
  const {forecast, baseline, verify} = repair;
  const rma = repair.rma ?? null;  // of an older version: absent
  const packets = ({sent, lost}: {sent: number; lost: number}) =>
    sent === 0 ? undefined : `${format.count(lost)} of ${format.count(sent)} test packets lost`;
  return facts([
    ['Part', repair.part === '' ? 'none can be drained' : repair.part],
    ['Stage', el('span', {}, el('strong', {}, label(repair.stage)), ` for ${age(repair.since)}`,
                 repair.is_held ? ', on hold' : '')],
    ['Why', repair.reason === '' ? undefined : repair.reason],
    ['Guard', repair.refused_by === '' ? undefined : `${repair.refused_by} refuses`],
    ['Tried again', repair.retry_at === null ? undefined : time(repair.retry_at)],
    ['Forecast', forecast === null ? undefined :
      `${forecast.jobs} job${forecast.jobs === 1 ? '' : 's'}, slowest ${format.ratio(forecast.slowdown_max)} x` +
      `${forecast.worst === '' ? '' : ` (${forecast.worst})`}, ${forecast.stalled} stalled`],
    ['Before', packets(baseline)], ['Now', packets(verify)],
    ["Vendor's RMA", rma === null ? undefined : el('span', {}, el('strong', {}, rma.number), ', ordered ', time(rma.ordered),
      rma.shipped === null ? '' : ', shipped ', rma.shipped === null ? '' : time(rma.shipped),
      rma.received === null ? '' : ', received ', rma.received === null ? '' : time(rma.received))],
    ['Approved by', repair.approved_by === '' ? undefined : repair.approved_by],
    ['Resolution', repair.resolution === 'none' ? undefined : label(repair.resolution)]]);
}

function jobsOf(effects: JobEffects) {
  const bound = effects.method === 'simulated' ? '' : 'at most ';
  return section('jobs', 'Jobs',
    `What the running jobs lose without ${effects.part}. ${format.count(effects.unaffected)} other${effects.unaffected === 1 ? ' loses' : 's lose'} nothing.` +
    (effects.stale ? ' The scheduler has not answered for long.' : ''),
    effects.jobs.length === 0 ? undefined : cards('Jobs', [...texts('Job', 'User'), {title: 'Hosts', align: 'right'},
      ...texts('Without the part', 'Its hosts there', 'Replace')],
      effects.jobs.map((job) => [`${job.id} ${job.name}`, job.user, format.count(job.host_count),
        job.stalled ? el('strong', {}, 'is stalled') : `${bound}${format.ratio(job.slowdown)} times as long`,
        job.hosts_at_part.join(', ') || format.none,
        job.spares.map(({host, spare}) => `${host} by ${spare}`).join(', ') || format.none])));
}

// Jobs whose traces speak of the case, by the ids of their records: "job:NAME/PART/TIME", "job:NAME/hang/PART/TIME".
function tracedJobs(item: Case) {
  const jobs = item.members.map(({record}) => /^job:(.+?)(?:\/hang)?\/[^/]+\/\d+$/.exec(record)?.[1]);
  return [...new Set(jobs.filter((job) => job !== undefined))].slice(0, 8);
}

function traceOf(trace: JobTrace) {
  const {network, verdicts = []} = trace;
  const suspects = network?.judged === true ? network.suspects.slice(0, 6) : [];
  const sums = network?.judged !== true ? undefined : (['network', 'compute', 'load', 'nothing'] as const)
    .map((cause) => `${cause} ${format.percent(network[cause])}`).join(', ');
  return el('div', {}, el('h3', {}, `Job ${trace.job}`),
    facts([
      ['Analysed', trace.analysed === null ? 'not yet' : el('span', {}, time(trace.analysed), ` (${age(trace.analysed)} ago)`)],
      ['Not analysed', trace.error],
      ['Ranks', trace.ranks === undefined ? undefined
        : `${format.count(trace.ranks)}, ${format.count(trace.missing ?? 0)} without a trace` +
          (trace.hang === true ? `, ${format.count(trace.waiting ?? 0)} stalled` : '')],
      ['Is it the network?', sums],
      ['By', network === undefined ? undefined
        : `${format.count(network.edges)} edges, ${format.count(network.probe_rows)} rows of probes`]]),
    verdicts.length === 0 ? undefined : el('ul', {}, ...verdicts.slice(0, 12).map((verdict) => el('li', {},
      el('strong', {}, label(verdict.finding)),
      verdict.ranks.length === 0 ? '' : ` ${verdict.ranks.length === 1 ? 'rank' : 'ranks'} ${verdict.ranks.slice(0, 16).join(', ')}`,
      verdict.hosts === undefined ? '' : ` on ${verdict.hosts.slice(0, 16).join(', ')}`, `: ${verdict.meaning}`))),
    suspects.length === 0 ? undefined : table(`Suspects of job ${trace.job}`, [...texts('Part', 'Cause'),
      {title: 'Probability', align: 'right'}, {title: 'Time', align: 'right'}], suspects.map((one) => [
        `${one.entity ?? format.none}${one.rank === undefined ? '' : `, rank ${one.rank}`}`, label(one.cause),
        format.percent(one.probability), one.factor > 1 ? `${format.ratio(one.factor)} x` : format.none])),
    trace.ranks === undefined ? undefined : picture(trace.job));
}

// Some hundred kilobytes: read when somebody opens it, as it is then.
function picture(job: string) {
  const place = el('div');
  const box = el('details', {}, el('summary', {}, 'Waits, who waits for whom, and the time line'), place) as HTMLDetailsElement;
  box.addEventListener('toggle', () => {
    if (!box.open) return place.replaceChildren();
    ask<JobPicture>(`/v1/jobs/${part(job)}/trace/picture`)
      .then((found) => place.replaceChildren(...traceSections(found, `trace-${job}-`)))
      .catch((error: Error) => place.replaceChildren(el('p', {class: 'lead'}, error.message)));
  });
  return box;
}

export class CasePage {
  readonly root = el('section', {'aria-label': 'Case'}, el('p', {class: 'lead'}, 'Reading …'));
  private item: Case | undefined;
  private lines: Line[] = [];
  private readonly repair = el('div');
  private readonly repairFacts = el('div');
  private readonly repairCommands = el('div');
  private readonly repairOthers = el('div');
  private readonly commands = new Commands(() => void this.read());
  private readonly head = el('div');
  private readonly people = el('div');
  private readonly jobs = el('div');
  private readonly traces = el('div');
  private readonly story = el('div');
  private readonly log = el('div');

  constructor(private readonly live: Known, private readonly id: string) {
    void this.read(true);
  }

  async read(isFirst = false) {
    try {
      const path = `/v1/cases/${part(this.id)}`;
      const item = await ask<Case>(then(`${path}?members=1000`));
      const isNew = JSON.stringify(item.members) !== JSON.stringify(this.item?.members);
      this.item = item;
      if (isFirst) await this.frame(item);
      this.showHead(item);
      if (isNew) await this.readLines(Math.max(this.lines.length, pageRows));
      await this.showTraces(item);
      this.showRepair();
      await this.showLog();
    } catch (error) {
      if (isFirst) this.root.replaceChildren(el('h1', {}, this.id), el('p', {class: 'lead'}, (error as Error).message));
    }
  }

  private async frame(item: Case) {
    const fabric = await ask<Fabric>('/v1/fabric').catch(() => undefined);
    const map = fabric === undefined ? undefined : neighbourhood(fabric, nodesOf(item.cause.entity));
    this.root.replaceChildren(this.head, el('div', {class: 'split'}, this.repair, map ?? el('div')), this.people,
                              this.jobs, this.traces, this.story, this.log);
    if (item.closed === null && !isPast()) void this.showJobs();
  }

  // Simulated when it is asked for.
  private async showJobs() {
    const effects = await ask<JobEffects>(`/v1/cases/${part(this.id)}/jobs`).catch(() => undefined);
    if (effects !== undefined && effects.from !== null) this.jobs.replaceChildren(jobsOf(effects));
  }

  private async showTraces(item: Case) {
    if (isPast()) return;
    const found = await Promise.all(tracedJobs(item).map((job) =>
      ask<JobTrace>(`/v1/jobs/${part(job)}/trace`).catch(() => undefined)));
    const known = found.filter((trace) => trace !== undefined);
    // What somebody has opened stays until it is closed.
    if (this.traces.querySelector('details[open]') !== null) return;
    this.traces.replaceChildren(...(known.length === 0 ? [] : [section('traces', 'Traced jobs',
      'What the collectives of jobs that this part slows say now.', ...known.map(traceOf))]));
  }

  private showHead(item: Case) {
    this.head.replaceChildren(
      el('h1', {}, `${label(item.cause.kind)} at ${item.cause.entity}`),
      el('p', {class: 'lead'}, badge(severity(item.cause.kind), severity(item.cause.kind)), ` ${item.standing}, case `,
         el('code', {}, item.id), item.into === undefined ? '' : ' is part of ',
         item.into === undefined ? '' : caseLink(item.into)),
      facts([['Opened', el('span', {}, time(item.opened), ` (${age(item.opened)} ago)`)],
             ['Closed', item.closed === null ? undefined : time(item.closed)],
             ['Confidence', format.percent(item.confidence)],
             ['Records', `${format.count(item.records ?? 0)}` + (item.unexplained.length > 0
               ? `, and ${item.unexplained.length} beside them that it does not explain` : '')],
             ['Would also have been', item.suppressed === 0 ? undefined : `${item.suppressed} cases of other parts`],
             ['Silent', item.silent === 0 ? undefined : `${item.silent} parts that should have spoken`],
             ['Maintenance', item.maintenance], ['Split from', item.split_from === undefined ? undefined : caseLink(item.split_from)]]));
  }

  private async readLines(rows: number) {
    const item = this.item;
    if (item === undefined) return;
    const found = await ask<{items: Said[]}>(
      then(`/v1/cases/${part(this.id)}/records?limit=${Math.min(rows, 1000)}`));
    const said = new Map(found.items.map((one) => [one.id, one]));
    this.lines = item.members.slice(0, rows).map(({record, relation}) => lineOf(record, relation, said.get(record)));
    this.showLines(item);
  }

  private showLines(item: Case) {
    const columns: Column[] = texts('Time', 'Source', 'Part', 'What was said', 'Why it belongs', 'Record');
    const rows = this.lines.map((line) => [
      line.at === '' ? format.none : time(line.at), line.source, line.entity,
      el('span', {class: 'words'}, line.kind === '' ? '' : el('strong', {}, label(line.kind)), ' ', line.words),
      relations[line.relation] ?? line.relation,
      el('code', {}, line.id)]);
    const left = item.members.length - this.lines.length;
    const more = left > 0 ? button(`Show ${left} more`, () => void this.readLines(1000)) : undefined;
    const summed = item.members_summarised ?? [];
    this.story.replaceChildren(section('said', 'What was said', 'Each record of the case, in the words of who said it.',
      timeline(this.lines), cards('Records', columns, rows), more,
      summed.length === 0 ? undefined : table('Said again and again', [...texts('Part', 'Kind', 'Source', 'Why it belongs'),
        {title: 'Records', align: 'right'}, text('Last')], summed.map((row) => [row.entity, label(row.kind), row.source,
          relations[row.relation] ?? row.relation, format.count(row.records), time(row.last)]))));
  }

  showRepair() {
    if (isPast())
      return this.repair.replaceChildren(section('repair', 'Repair',
        'Where the repair stood then is not kept: its steps are below, under What was done. Jobs and their traces of then are not kept either.'));
    const repair = this.live.repairOf.get(this.id);
    const others = repair?.cases.filter((of) => of.id !== this.id &&
      (of.kind !== this.item?.cause.kind || of.root !== this.item.cause.entity)) ?? [];
    if (!this.repair.contains(this.repairFacts))
      this.repair.replaceChildren(section('repair', 'Repair', '', this.repairFacts, this.repairCommands, this.repairOthers));
    this.repairFacts.replaceChildren(repair === undefined ? el('p', {class: 'lead'}, 'None is under way.') : repairFacts(repair));
    this.showCommands(repair);
    this.repairOthers.replaceChildren(...(others.length === 0 ? [] : [el('h3', {}, 'What else it was taken for'),
      el('ul', {}, ...others.map((of) => el('li', {}, caseLink(of.id, `${label(of.kind)} at ${of.root}`),
        ` with ${format.percent(of.confidence)}`, of.is_open ? ', open' : of.is_moved ? ', dropped' : ', over')))]));
  }

  private showCommands(repair: Repair | undefined) {
    if (repair === undefined || repair.ended !== null) return this.repairCommands.replaceChildren();
    const run = (command: string) => (reason: string) => send('POST', `/v1/cases/${part(this.id)}/${command}`, {reason});
    this.commands.show([
      {words: 'Approve', run: run('approve')}, {words: 'Reject', run: run('reject')},
      repair.is_held ? {words: 'Release', run: run('release')} : {words: 'Hold', run: run('hold')},
      {words: 'Repaired', run: run('repaired')}, ...this.vendorSteps(repair)]);
    if (!this.repairCommands.contains(this.commands.root)) this.repairCommands.replaceChildren(this.commands.root);
  }

  // Who takes care of the case, and what people said about it.
  private showPeople(comments: Audit[]) {
    const fields = [...this.people.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input, textarea')];
    if (fields.some((field) => field.value !== '')) return;  // something is being written
    const handling = this.live.handlingOf.get(this.id);
    const owner = handling?.owner ?? '';
    const said = el('p', {role: 'status', class: 'said'});
    const run = (command: string, body: Record<string, string>) => {
      send('POST', `/v1/cases/${part(this.id)}/${command}`, body).then(() => {
        for (const field of [name, words]) field.value = '';
        void this.read();
      }).catch((error: Error) => { said.textContent = `Refused: ${error.message}`; });
    };
    const name = el('input', {type: 'text', placeholder: 'Name (empty: you)', maxlength: '200',
                              'aria-label': 'Owner'}) as HTMLInputElement;
    const words = el('textarea', {rows: '2', placeholder: 'Comment', maxlength: '2500',
                                  'aria-label': 'Comment'}) as HTMLTextAreaElement;
    const filled = (key: string, field: HTMLInputElement | HTMLTextAreaElement): Record<string, string> =>
      field.value.trim() === '' ? {} : {[key]: field.value.trim()};
    redraw(this.people, () => this.people.replaceChildren(section('people', 'Owner and comments', '',
      owner === '' ? el('p', {class: 'lead'}, 'Nobody has taken this case.') : facts([
        ['Owner', el('span', {}, el('strong', {}, owner), ` for ${age(handling?.since ?? '')}`,
                     handling?.by === owner ? '' : `, by ${handling?.by ?? ''}`)]]),
      ...comments.map((one) => el('p', {class: 'comment'}, el('strong', {}, one.actor), ' ', time(one.t), el('br'),
        el('span', {class: 'words'}, (one.detail as {text?: string}).text ?? ''))),
      ...(isPast() ? [] : [el('div', {class: 'commands'}, name, button('Set owner', () => run('own', filled('owner', name))),
        owner === '' ? undefined : button('Clear owner', () => run('disown', {}))),
      el('div', {class: 'commands'}, words, button('Comment', () => {
        if (words.value.trim() === '') words.focus();
        else run('comment', filled('text', words));
      })), said]))));
  }

  // Where it waits for people, or for the vendor.
  private readonly number = el('input', {type: 'text', placeholder: "Vendor's number", maxlength: '128',
                                         'aria-label': "Vendor's number of the return"}) as HTMLInputElement;
  private vendorSteps(repair: Repair) {
    const step = (words: string, name: string) => ({words, run: (reason: string) =>
      send('POST', `/v1/cases/${part(this.id)}/rma`,
           name === 'ordered' ? {step: name, number: this.number.value.trim(), reason} : {step: name, reason})});
    if (repair.stage === 'rma') return [step('Shipped', 'shipped'), step('Received', 'received')];
    const waits = repair.stage === 'repairing' || (repair.stage === 'proposed' && repair.part === '');
    return waits ? [{...step('To vendor', 'ordered'), field: this.number}] : [];
  }

  private showsAll = false;  // of the audit log
  private async showLog() {
    const [audit, snapshots] = await Promise.all([
      ask<{items: Audit[]}>(`/v1/audit?case=${part(this.id)}&limit=10000`),
      ask<{items: Record<string, unknown>[]}>('/v1/snapshots?limit=1000').catch(() => ({items: []}))]);
    audit.items = audit.items.filter((entry) => !isPast() || Date.parse(entry.t) <= serviceNow());
    this.showPeople(audit.items.filter((entry) => entry.action === 'comment'));
    const taken = snapshots.items.filter((one) => (one['case'] === this.id || one['case_id'] === this.id) &&
      (!isPast() || Number(/\.(\d+)$/.exec(String(one['id']))?.[1] ?? 0) / 1e6 <= serviceNow()));
    const shown = this.showsAll ? audit.items : audit.items.slice(-pageRows);
    const left = audit.items.length - shown.length;
    this.log.replaceChildren(
      section('snapshot', 'Snapshot', taken.length === 0 ? 'None was taken.' : '',
              ...taken.map((one) => el('pre', {tabindex: '0'}, JSON.stringify(one, null, 1)))),
      section('log', 'What was done', left > 0 ? `The latest ${shown.length} of ${format.count(audit.items.length)} entries.` : '',
        left > 0 ? button(`Show ${format.count(left)} earlier ones`, () => { this.showsAll = true; void this.showLog(); }) : undefined,
        cards('Audit log', texts('Time', 'Who', 'What', 'Details'), shown.map((entry) => [time(entry.t), entry.actor, label(entry.action),
          el('span', {class: 'words'}, Object.entries((entry.detail ?? {}) as Record<string, unknown>)
            .filter(([, value]) => value !== '' && value !== null).map(([key, value]) =>
              `${label(key)}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`).join(', '))]))));
  }
}
