// The network now: fabric, probes, minutes, capacity, feeds.
import {el, number, section, text} from '../dom';
import * as format from '../format';
import {rampColour, readTheme} from '../theme';
import {ask, send, type Count, type Fabric, type Feeds, type Probes, type Series} from './api';
import type {Known} from './live';
import {cableOf, matrix} from './map';
import {age, badge, button, cards, caseLink, cell, cellOf, Commands, isPast, label, link, nodesOf, redraw, serviceNow, texts, then, time} from './ui';

const lossyShare = 1e-3;
const share = ({sent, lost}: Count) => (sent === 0 ? 0 : lost / sent);
const latency = (us: number) => (us < 0 ? 'not measured' : format.seconds(us / 1e6));
const told = (of: Count) => `${format.count(of.lost)} of ${format.count(of.sent)} probes lost ` +
  `(${format.percent(share(of))}), p99 ${latency(of.p99_us)}`;

export const legend = (...rows: [string, string][]) => el('p', {class: 'legend'}, ...rows.map(([name, words]) =>
  el('span', {class: `key state-${name}`}, words)));

// A page that reads something, and shows it again when told to.
export abstract class Page<T> {
  readonly root: HTMLElement;
  private readonly said = el('p', {class: 'lead', role: 'status'}, 'Reading …');
  protected readonly body = el('div');
  private isReading = false;

  constructor(title: string, lead: string, protected readonly live: Known) {
    this.root = el('section', {'aria-label': title}, el('h1', {}, title), el('p', {class: 'lead'}, lead), this.said, this.body);
  }
  protected abstract get(): Promise<T>;
  protected abstract show(of: T): void;

  async read() {
    if (this.isReading) return;
    this.isReading = true;
    try {
      const found = await this.get();
      if (this.live.failure !== '' && isPast()) throw new Error(this.live.failure);
      redraw(this.body, () => this.show(found));
      this.said.textContent = '';
    } catch (error) {
      this.said.textContent = (error as Error).message;
    }
    this.isReading = false;
  }
}

interface State {
  name: 'ok' | 'unprobed' | 'lossy' | 'suspected' | 'out';
  words: string;
  to?: string;
}

// Of each cable, by cell(), and of each switch, by name: the worst of what is known.
class States {
  private readonly of = new Map<string, State>();
  private readonly probed = new Set<string>();

  constructor(live: Known, probes: Probes | undefined) {
    for (const found of probes?.links ?? []) this.probed.add(cellOf(found.link) ?? '');
    for (const found of probes?.links ?? [])
      if (share(found) >= lossyShare) this.set(found.link, {name: 'lossy', words: told(found)});
    for (const {link: name, rate, loss} of live.network?.links ?? [])
      this.set(name, {name: 'lossy', words: rate === 0 ? 'down' : loss > 0 ? `loses ${format.percent(loss)}` : `at ${format.percent(rate)} of its rate`});
    for (const part of live.capacity?.suspected ?? []) this.set(part, {name: 'suspected', words: 'suspected'});
    for (const item of live.cases.values())
      this.set(item.cause.entity, {name: 'suspected', words: `case: ${label(item.cause.kind)}`, to: then(`#/case/${encodeURIComponent(item.id)}`)});
    for (const part of live.capacity?.out ?? live.network?.out.map((row) => row.part) ?? []) {
      const key = cellOf(part) ?? nodesOf(part)[0] ?? '';
      this.set(part, {...this.of.get(key), name: 'out', words: `out of service${this.of.has(key) ? `, ${this.of.get(key)?.words}` : ''}`});
    }
  }
  private set(entity: string, state: State) {
    const key = cellOf(entity) ?? nodesOf(entity)[0];
    if (key !== undefined) this.of.set(key, {...this.of.get(key), ...state});
  }
  get(key: string) { return this.of.get(key); }
  cable(a: string, b: string): State {
    return this.of.get(cell(a, b)) ?? this.of.get(a) ?? this.of.get(b) ??
      (this.probed.has(cell(a, b)) ? {name: 'ok', words: 'no probe was lost'} : {name: 'unprobed', words: 'no probe crosses it'});
  }
}

export class FabricPage extends Page<[Fabric, Probes | undefined]> {
  private fabric: Promise<Fabric> | undefined;

  constructor(live: Known) {
    super('Fabric', 'Every cable between two layers of switches as a cell. A part with an open case is suspected.', live);
  }
  protected async get(): Promise<[Fabric, Probes | undefined]> {
    this.fabric ??= ask<Fabric>('/v1/fabric');  // it is the same for the life of the service
    return [await this.fabric, await ask<Probes>(then('/v1/probes')).catch(() => undefined)];
  }
  protected show([fabric, probes]: [Fabric, Probes | undefined]) {
    const states = new States(this.live, probes);
    const tiers = fabric.tiers.map((tier) => {
      const cables = new Set(tier.cables.map(([row, column]) => cableOf(tier, row, column)));
      const counts = new Map<string, number>();
      for (const [row, column, parallel] of tier.cables) {
        const {name} = states.cable(tier.row_names[row] ?? '', tier.column_names[column] ?? '');
        counts.set(name, (counts.get(name) ?? 0) + parallel);
      }
      const map = matrix({rows: tier.row_names, columns: tier.column_names, label: `Cables of ${tier.rows} and ${tier.columns}`,
        at: (row, column) => {
          if (!cables.has(cableOf(tier, row, column))) return undefined;
          const state = states.cable(tier.row_names[row] ?? '', tier.column_names[column] ?? '');
          return {colour: `--state-${state.name}`, words: state.words, ...(state.to === undefined ? {} : {to: state.to})};
        }});
      const nodes = (names: string[]) => names.filter((name) => states.get(name) !== undefined).map((name) => {
        const state = states.get(name);
        return el('li', {}, badge(state?.name ?? '', state?.name ?? ''), ' ',
                  state?.to === undefined ? name : el('a', {href: state.to}, name), ` ${state?.words ?? ''}`);
      });
      const bad = [...nodes(tier.column_names), ...nodes(tier.row_names)];
      return section(`tier-${tier.rows}`, `${tier.rows} × ${tier.columns}`,
        ['ok', 'unprobed', 'lossy', 'suspected', 'out'].map((name) => `${format.count(counts.get(name) ?? 0)} ${name === 'out' ? 'out of service' : name}`).join(', ') +
          ` of ${format.count(tier.cables.reduce((sum, cable) => sum + cable[2], 0))} cables` +
          (tier.left_out > 0 ? `; ${format.count(tier.left_out)} more are not shown` : ''),
        legend(['ok', 'no probe lost'], ['unprobed', 'no probes'], ['lossy', 'probes lost'], ['suspected', 'open case'], ['out', 'out of service']),
        map.root, bad.length === 0 ? undefined : el('ul', {class: 'parts'}, ...bad));
    });
    this.body.replaceChildren(...tiers, el('p', {class: 'lead'},
      Object.entries(fabric.roles).map(([role, nodes]) => `${format.count(nodes)} ${role}`).join(' · ')));
  }
}

export class ProbePage extends Page<Probes> {
  private by: 'loss' | 'p99' = 'loss';
  constructor(live: Known) {
    super('Probes', 'What probes met in the last seconds. A lost probe counts for every link of its path.', live);
  }
  protected get() { return ask<Probes>(then('/v1/probes')); }
  protected show(of: Probes) {
    if (of.rows === 0) {
      this.body.replaceChildren(el('p', {class: 'lead'}, isPast() ? 'No prober had spoken in the seconds before.'
        : 'No prober has spoken lately. `weft probe` results go to POST /v1/evidence.'));
      return;
    }
    const theme = readTheme();
    const order = [...of.racks.keys()].sort((a, b) => (of.racks[a] ?? '').localeCompare(of.racks[b] ?? '', 'en', {numeric: true}));
    const at = new Map(of.pairs.map((pair) => [`${pair.from} ${pair.to}`, pair]));
    const value = (count: Count) => (this.by === 'loss' ? share(count) : Math.max(count.p99_us, 0));
    const max = Math.max(...of.pairs.map(value), this.by === 'loss' ? lossyShare : 1e-9);
    const names = order.map((rack) => of.racks[rack] ?? '');
    const map = matrix({rows: names, columns: names, label: `Probes from rack (rows) to rack, by ${this.by}`,
      at: (row, column) => {
        const pair = at.get(`${order[row]} ${order[column]}`);
        return pair === undefined ? undefined : {colour: rampColour(theme.ramp, value(pair) / max), words: told(pair)};
      }});
    const flip = button(this.by === 'loss' ? 'Show p99 instead' : 'Show loss instead',
                        () => { this.by = this.by === 'loss' ? 'p99' : 'loss'; this.show(of); });
    const scale = this.by === 'loss' ? format.percent(max) : latency(max);
    const lossy = of.links.filter((row) => row.lost > 0).slice(0, 100);
    this.body.replaceChildren(
      el('p', {class: 'lead'}, `${format.count(of.links_probed)} of ${format.count(of.links_all)} links probed (${format.percent(of.links_probed / Math.max(of.links_all, 1))}), ` +
        `${format.count(of.rows)} rows, ${format.count(of.rows_without_path)} without a path, windows of `, time(of.from), ' to ', time(of.to)),
      section('pairs', `Rack to rack, ${this.by}`, `From the row to the column; the strongest colour is ${scale}.`, flip, map.root),
      section('links', 'Links', '', lossy.length === 0 ? el('p', {class: 'lead'}, 'No probe was lost on a path that is known.') :
        cards('Links of paths with losses', [text('Link'), number('Sent'), number('Lost'), number('Loss'), number('p99')],
              lossy.map((row) => [row.link, format.count(row.sent), format.count(row.lost), format.percent(share(row)), latency(row.p99_us)]))));
  }
}

interface Sli { series: Series[] }

export class MinutePage extends Page<Sli> {
  private hours = 24;
  constructor(live: Known) {
    super('Minutes', 'Good and bad minutes by objective and scope, with what is left of the budget.' +
      (isPast() ? ' Up to that instant, from the probes that are still kept; causes as they are known today.' : ''), live);
  }
  protected get() {
    const now = serviceNow();
    return ask<Sli>(`/v1/sli?from=${new Date(now - this.hours * 3600e3).toISOString()}&to=${new Date(now).toISOString()}`);
  }
  protected show(of: Sli) {
    const worst = [...of.series].sort((a, b) => b.minutes.bad - a.minutes.bad);
    const causes = (row: Series) => el('span', {}, ...row.causes.slice(0, 4).flatMap((cause, i) => [i > 0 ? ', ' : '',
      cause.episode === null ? label(cause.kind) : caseLink(cause.episode, label(cause.kind)), ` ${format.number(cause.minutes, 3)} min`]));
    const choose = el('div', {class: 'zoom'}, ...[1, 6, 24, 168].map((hours) => button(`${hours} h`,
      () => { this.hours = hours; void this.read(); }, {'aria-pressed': String(hours === this.hours)})));
    const columns = [text('Objective'), text('Scope'), number('Good'), number('Bad'), number('No data'), number('Coverage'),
                     number('Availability'), number('Budget left'), number('Burn'), text('Causes')];
    this.body.replaceChildren(choose, cards(`The last ${this.hours} h`, columns, worst.slice(0, 300).map((row) => [
      `${row.objective}${row.class === '' ? '' : ` class ${row.class}`}`, row.entity === '' ? row.scope : row.entity,
      format.count(row.minutes.good), format.count(row.minutes.bad), format.count(row.minutes.no_data), format.percent(row.coverage),
      row.availability === null ? format.none : `${format.number(row.availability * 100, 5)} %`,
      `${format.percent(row.budget.left)} of ${format.number(row.budget.allowed_minutes)} min`,
      format.number(Math.max(0, ...row.budget.burn_rates.map((burn) => burn.rate ?? 0)), 3), causes(row)])),
      worst.length > 300 ? el('p', {class: 'lead'}, `The worst 300 of ${worst.length}.`) : '');
  }
}

export class CapacityPage extends Page<void> {
  private readonly table = el('div');
  private readonly commands = new Commands(() => void this.live.refresh().then(() => this.show()));
  private control: boolean | undefined;  // what the kill switch was shown as
  constructor(live: Known) {
    super('Capacity', 'What is out of service, what is left of the uplinks, and the switch that stops all actions.', live);
    this.body.append(el('div', {class: 'kill'}), this.table);
  }
  protected get() { return this.live.readCapacity(); }
  protected show() {
    if (isPast()) return this.showPast();
    const of = this.live.capacity;
    if (of === undefined) return;
    const repairs = new Map([...this.live.repairOf.values()].map((repair) => [repair.part, repair]));
    const part = (name: string) => {
      const repair = repairs.get(name);
      const of = repair?.cases.find(({is_open}) => is_open) ?? repair?.cases.at(-1);
      return [name, repair === undefined ? '' : label(repair.stage), repair?.reason ?? '', of === undefined ? '' : caseLink(of.id)];
    };
    const lifts = of.frozen.some((row) => row.who !== 'policy') ?
      [{words: 'Lift freezes', run: (reason: string) => send('DELETE', '/v1/freeze', {reason})}] : [];
    if (this.control !== of.kill_switch) {
      this.control = of.kill_switch;
      this.body.firstElementChild?.replaceChildren(section('kill', 'Kill switch', of.kill_switch
        ? 'On: weft takes no action.' : 'Off: weft acts as the policy says.', this.commands.root));
    }
    this.commands.show(of.kill_switch ? [{words: 'Allow actions again', run: (reason) => send('DELETE', '/v1/kill-switch', {reason})}, ...lifts]
      : [{words: 'Stop all actions', run: (reason) => send('PUT', '/v1/kill-switch', {reason})},
         {words: 'No new drains for 1 h', run: (reason) => send('POST', '/v1/freeze',
           {reason, until: new Date(serviceNow() + 3600e3).toISOString()})}, ...lifts]);
    this.table.replaceChildren(
      of.frozen.length === 0 ? '' : section('frozen', 'Freezes', '', cards('No new drains', texts('From', 'Until', 'Who', 'Why'),
        of.frozen.map((row) => [time(row.from), time(row.until), row.who, row.why]))),
      section('out', 'Out of service', `${of.out.length} part${of.out.length === 1 ? '' : 's'} by weft; at most ${of.out_max} may be.`,
        of.out.length === 0 ? undefined : cards('Out of service', texts('Part', 'Stage', 'Why', 'Case'), of.out.map(part))),
      section('left', 'Uplink capacity', `Groups of uplinks that lack cables, or would without the ${of.suspected.length} suspected parts: ${of.groups.length}; ` +
        `whole: ${format.count(of.groups_whole)}. The policy keeps ${format.percent(of.rack_share)} of a rack's.`,
        of.groups.length === 0 ? undefined : cards('Groups', [text('Group'), number('Cables in service'), number('Capacity left'), number('Left without suspects')],
          of.groups.slice(0, 300).map((row) => [row.name, `${row.live} of ${row.cables}`, format.percent(row.share),
            row.share_without_suspects < of.rack_share ? badge('high', format.percent(row.share_without_suspects)) : format.percent(row.share_without_suspects)]))));
  }

  // What orders had taken out, by the log.
  private showPast() {
    const out = this.live.network?.out ?? [];
    this.table.replaceChildren(
      section('out', 'Out of service', `${out.length} part${out.length === 1 ? '' : 's'} by orders that the log holds.`,
        out.length === 0 ? undefined : cards('Out of service', texts('Part', 'By', 'Since'),
          out.map((row) => [row.part, row.by, row.since === null ? format.none : time(row.since)]))),
      section('left', 'Kill switch, freezes, uplinks', 'Not kept for instants that are over; the audit log has who set them when.'));
  }
}

// Of what is not kept for instants that are over.
export function notKeptPage(title: string, words: string) {
  const root = el('section', {'aria-label': title}, el('h1', {}, title), el('p', {class: 'lead'}, words));
  return {root, read: () => Promise.resolve()};
}

export class FeedPage extends Page<Feeds> {
  constructor(live: Known) {
    super('Feeds', 'When each device was last heard, and messages that no rule understands.', live);
  }
  protected get() { return ask<Feeds>('/v1/feeds'); }
  protected show(of: Feeds) {
    const speakers = [...of.speakers].sort((a, b) => (a.last < b.last ? -1 : 1));
    const unknown = [...of.unknown].sort((a, b) => b.lines - a.lines);
    this.body.replaceChildren(
      section('unknown', 'Not understood', `${format.count(unknown.length)} texts, numbers aside` +
        (of.unknown_left_out > 0 ? `, and ${format.count(of.unknown_left_out)} lines of others` : '') + '. docs/telemetry.md says how to give them a meaning.',
        unknown.length === 0 ? undefined : cards('Not understood', [text('Text'), text('Device'), number('Lines'), text('Last')],
          unknown.map((row) => [el('span', {class: 'words'}, row.text), row.device, format.count(row.lines), time(row.last)]))),
      section('silent', 'Never heard', `${format.count(of.silent_switches.length)} switches said nothing since the service began to read` +
        (of.silent_switches.length === 0 ? '.' : `: ${of.silent_switches.slice(0, 40).join(', ')}${of.silent_switches.length > 40 ? ', …' : ''}`)),
      section('speakers', 'Devices', `${format.count(speakers.length)}, longest silent first.`,
        speakers.length === 0 ? undefined : cards('Devices', [text('Device'), text('Source'), number('Lines'), text('Last heard')],
          speakers.slice(0, 500).map((row) => [link(`cases?q=${encodeURIComponent(row.device)}`, row.device), row.source,
            format.count(row.lines), el('span', {}, time(row.last), ` (${age(row.last)} ago)`)]))));
  }
}
