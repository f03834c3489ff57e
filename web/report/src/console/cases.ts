// The list of cases: filters live in the address, so that a view can be sent to somebody.
import {el, number, text} from '../dom';
import * as format from '../format';
import {pages, type Case} from './api';
import type {Known} from './live';
import {age, badge, button, cards, caseLink, isPast, label, notKept, redraw, severities, severity, then, time} from './ui';

const rowsAtFirst = 200;
const sorts: Record<string, string> = {severity: 'severity', age: 'newest first', oldest: 'oldest first',
                                       records: 'most records', root: 'place'};

interface Row {
  item: Case;
  severity: string;
  stage: string;
  owner: string;
  words: string;  // that a search looks at
}

export class CaseList {
  readonly root = el('section', {'aria-label': 'Cases'});
  private readonly body = el('div');
  private readonly count = el('p', {class: 'lead', role: 'status', id: 'count'});
  private readonly controls = new Map<string, HTMLInputElement | HTMLSelectElement>();
  private limit = rowsAtFirst;
  private closed: Case[] | undefined;

  constructor(private readonly live: Known, private readonly query: URLSearchParams,
              private readonly changed: (query: URLSearchParams) => void) {
    const search = el('input', {type: 'search', placeholder: 'Search place, cause, case  ( / )', id: 'search',
                                'aria-label': 'Search'}) as HTMLInputElement;
    this.controls.set('q', search);
    const select = (key: string, title: string, options: [string, string][]) => {
      const node = el('select', {'aria-label': title},
        ...options.map(([value, words]) => el('option', {value}, words))) as HTMLSelectElement;
      this.controls.set(key, node);
      return node;
    };
    const bar = el('div', {class: 'filters', role: 'search'}, search,
      select('standing', 'Standing', [['', 'open'], ['closed', 'closed']]),
      select('severity', 'Severity', [['', 'any severity'], ...severities.map((s): [string, string] => [s, s])]),
      select('kind', 'Cause', [['', 'any cause']]),
      select('stage', 'Repair', [['', 'any repair']]),
      select('owner', 'Owner', [['', 'any owner']]),
      select('sort', 'Order', Object.entries(sorts)));
    if (isPast()) this.controls.get('stage')?.setAttribute('disabled', '');
    for (const [key, node] of this.controls) {
      node.value = query.get(key) ?? (key === 'sort' ? 'severity' : '');
      node.addEventListener('input', () => this.filter(key, node.value));
    }
    this.root.append(el('h1', {}, 'Cases'), this.count, bar, this.body);
    if (query.get('standing') === 'closed') void this.readClosed();
  }

  private filter(key: string, value: string) {
    if (value === '' || (key === 'sort' && value === 'severity')) this.query.delete(key);
    else this.query.set(key, value);
    this.limit = rowsAtFirst;
    this.changed(this.query);
    if (key === 'standing' && value === 'closed') void this.readClosed();
    else this.show();
  }

  // The last thousand.
  private async readClosed() {
    const found: Case[] = [];
    await pages<Case>(then('/v1/cases?state=closed&limit=1000&members=0'), (items) => found.push(...items))
      .catch((error: Error) => { this.live.failure = error.message; });
    this.closed = found;
    this.show();
  }

  private rows(): Row[] {
    const items = this.query.get('standing') === 'closed' ? this.closed ?? [] : [...this.live.cases.values()];
    return items.map((item) => {
      const repair = this.live.repairOf.get(item.id);
      const stage = repair?.stage ?? '';
      const owner = this.live.handlingOf.get(item.id)?.owner ?? '';
      return {item, severity: severity(item.cause.kind), stage, owner: owner === '' ? 'nobody' : owner,
              words: `${item.id} ${item.cause.kind} ${label(item.cause.kind)} ${item.cause.entity} ` +
                     `${stage} ${repair?.reason ?? ''} ${owner}`.toLowerCase()};
    });
  }

  private sorted(rows: Row[]) {
    const opened = (a: Row, b: Row) => (a.item.opened < b.item.opened ? 1 : a.item.opened > b.item.opened ? -1 : 0);
    const place = (a: Row, b: Row) => a.item.cause.entity.localeCompare(b.item.cause.entity, 'en', {numeric: true});
    const orders: Record<string, (a: Row, b: Row) => number> = {
      severity: (a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity) || opened(a, b),
      age: opened, oldest: (a, b) => opened(b, a), root: place,
      records: (a, b) => (b.item.records ?? 0) - (a.item.records ?? 0)};
    return rows.sort((a, b) => orders[this.query.get('sort') ?? 'severity']?.(a, b) || place(a, b));
  }

  // What can be chosen is what there is, and how many.
  private options(key: string, all: string, values: string[]) {
    const counts = new Map<string, number>();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const chosen = this.query.get(key) ?? '';
    if (chosen !== '' && !counts.has(chosen)) counts.set(chosen, 0);
    const node = this.controls.get(key);
    if (node === undefined || node === document.activeElement) return;
    node.replaceChildren(el('option', {value: ''}, all), ...[...counts].sort().map(([value, n]) =>
      el('option', {value}, `${label(value)} (${n})`)));
    node.value = chosen;
  }

  private stageOf(id: string, stage: string) {
    if (isPast()) return notKept;
    return this.live.repairOf.get(id)?.is_held === true ? `${label(stage)}, on hold` : label(stage);
  }

  show() {
    const all = this.rows();
    this.options('kind', 'any cause', all.map((row) => row.item.cause.kind));
    this.options('stage', 'any repair', all.map((row) => row.stage).filter((stage) => stage !== ''));
    this.options('owner', 'any owner', all.map((row) => row.owner));
    const wanted = (this.query.get('q') ?? '').toLowerCase().split(/\s+/).filter((word) => word !== '');
    const is = (key: string, value: string) => (this.query.get(key) ?? value) === value;
    const found = this.sorted(all.filter((row) => is('severity', row.severity) && is('kind', row.item.cause.kind) &&
      is('stage', row.stage) && is('owner', row.owner) && wanted.every((word) => row.words.includes(word))));
    const standing = this.query.get('standing') ?? 'open';
    this.count.textContent = this.live.failure !== '' ? this.live.failure :
      !this.live.loaded || (standing === 'closed' && this.closed === undefined) ? 'Reading …' :
      `${format.count(all.length)} ${standing}` +
        (found.length === all.length ? '' : `, ${format.count(found.length)} found`) +
        (found.length > this.limit ? `, ${format.count(this.limit)} shown` : '');
    if (!this.live.loaded) return;
    const shown = found.slice(0, this.limit).map(({item, severity: how, stage, owner}) => [
      badge(how, how), caseLink(item.id, item.cause.entity), label(item.cause.kind),
      el('span', {}, age(item.opened), ' ', el('small', {}, time(item.opened))), String(item.records ?? 0),
      item.standing === 'provisional' ? badge('dim', 'provisional') : item.standing, this.stageOf(item.id, stage),
      owner === 'nobody' ? '' : owner]);
    const columns = [text('Severity'), text('Root'), text('Cause'), text('Age'), number('Records'),
                     text('State'), text('Repair'), text('Owner')];
    const more = found.length > this.limit
      ? [button(`Show all ${format.count(found.length)}`, () => { this.limit = Infinity; this.show(); }, {id: 'more'})] : [];
    redraw(this.body, () => this.body.replaceChildren(found.length > 0 ? cards('Cases', columns, shown)
      : el('p', {class: 'lead'}, all.length === 0 ? 'No case is open.' : 'No case fits the filters.'), ...more));
  }
}
