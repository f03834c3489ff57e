// What several pages of the console are made of.
import {el, type Column, text} from '../dom';
import type {Case} from './api';

const svgSpace = 'http://www.w3.org/2000/svg';

export function svg(name: string, props: Record<string, string | number> = {}, ...children: Node[]) {
  const node = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

export const label = (word: string) => word.replaceAll('_', ' ');
// The instant whose pages are shown; undefined: now.
let instant: string | undefined;
export const setInstant = (at: string | undefined) => { instant = at; };
export const isPast = () => instant !== undefined;
// The same path, of the API or of a page, at that instant.
export const then = (path: string) => (instant === undefined ? path
  : `${path}${path.includes('?') ? '&' : '?'}at=${encodeURIComponent(instant)}`);
export const notKept = 'not kept';

export const link = (to: string, ...children: (Node | string)[]) =>
  el('a', {href: then(`#/${to}`)}, ...children);
export const caseLink = (id: string, shown: Node | string = id) =>
  link(`case/${encodeURIComponent(id)}`, shown);

// The service's time, which a browser's clock need not have, and which is another one where the network is simulated.
let ahead = 0;  // of the browser's clock, ms
export const setServiceNow = (now: string) => { ahead = Date.parse(now) - Date.now(); };
export const liveNow = () => Date.now() + ahead;
export const serviceNow = () => (instant === undefined ? liveNow() : Date.parse(instant));

// "3 min", "2 h 05 min", "4 d": what passed since.
export function age(from: string, to = serviceNow()): string {
  const s = Math.max(0, Math.round((to - Date.parse(from)) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} min`;
  return `${Math.floor(s / 86400)} d`;
}

// Local time to the second, with the exact stamp as title.
export function time(stamp: string) {
  const at = new Date(stamp);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = new Date(serviceNow()).toDateString() === at.toDateString() ? '' :
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
  return el('time', {datetime: stamp, title: stamp},
            `${day}${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`);
}

// By how much of the network the cause takes with it. The service itself ranks no cases.
const severe = ['power', 'zone', 'rack', 'switch', 'rack_switch', 'misconfiguration', 'capacity'];
const minor = ['port_flap', 'optic', 'cable', 'host_nic', 'platform'];
export const severities = ['high', 'medium', 'low'];
export const severity = (kind: string) =>
  severe.includes(kind) ? 'high' : minor.includes(kind) ? 'low' : 'medium';

export const badge = (kind: string, words: string) => el('span', {class: `badge ${kind}`}, words);

// The nodes that a part names: "rtsw:3->ctsw:5", "rtsw:3--ctsw:5#2", "ctsw:5/7", "rtsw:3".
export const nodesOf = (entity: string) =>
  entity.split(/->|--/).map((end) => end.replace(/#\d+$/, '').replace(/\/.*$/, ''));
export const cell = (a: string, b: string) => (a < b ? `${a}--${b}` : `${b}--${a}`);
export const cellOf = (entity: string) => {
  const [a, b] = nodesOf(entity);
  return a === undefined || b === undefined ? undefined : cell(a, b);
};

// As dom.table(), whose cells carry their column's title for narrow screens, where rows are cards.
export function cards(caption: string, columns: Column[], rows: (Node | string)[][]) {
  const cls = (at: number) => (columns[at]?.align === 'right' ? 'number' : 'text');
  const head = el('tr', {role: 'row'}, ...columns.map((column, at) =>
    el('th', {scope: 'col', role: 'columnheader', class: cls(at)}, column.title)));
  const body = rows.map((row) => el('tr', {role: 'row'}, ...row.map((item, at) =>
    el(at === 0 ? 'th' : 'td', {...(at === 0 ? {scope: 'row', role: 'rowheader'} : {role: 'cell'}),
                                class: cls(at), 'data-title': columns[at]?.title ?? ''}, item))));
  return el('table', {class: 'cards', role: 'table'}, el('caption', {}, caption),
            el('thead', {role: 'rowgroup'}, head), el('tbody', {role: 'rowgroup'}, ...body));
}

export const texts = (...titles: string[]) => titles.map(text);
export const byOpened = (a: Case, b: Case) => (a.opened < b.opened ? 1 : -1);

export function button(words: string, does: () => void, props: Record<string, string> = {}) {
  const node = el('button', {type: 'button', ...props}, words);
  node.addEventListener('click', does);
  return node;
}

// Draws anew; what had the focus has it afterwards, where it is still there.
export function redraw(root: HTMLElement, draw: () => void) {
  const was = document.activeElement;
  const isInside = was !== null && root.contains(was);
  const mark = (node: Element) => node.getAttribute('href') ?? node.getAttribute('aria-label') ?? node.textContent;
  const wanted = isInside ? mark(was) : null;
  draw();
  if (isInside && !root.contains(was))
    [...root.querySelectorAll<HTMLElement>('a, button, input, [tabindex]')].find((node) => mark(node) === wanted)
      ?.focus({preventScroll: true});
}

export interface Command {
  words: string;
  run: (reason: string) => Promise<unknown>;
  field?: HTMLElement;
}

// Asks for the reason that every command needs, in place. What is being written stays when the commands become others.
export class Commands {
  private readonly reason = el('input', {type: 'text', placeholder: 'Reason, for the audit log', maxlength: '1000',
                                         'aria-label': 'Reason, for the audit log'}) as HTMLInputElement;
  private readonly said = el('p', {role: 'status', class: 'said'});
  private readonly buttons = el('span', {class: 'buttons'});
  private shown = '';
  readonly root = el('div', {class: 'commands'}, this.reason, this.buttons, this.said);

  constructor(private readonly done: () => void) {}

  show(rows: Command[]) {
    const words = rows.map((row) => row.words).join('\n');
    if (words === this.shown) return;
    this.shown = words;
    redraw(this.buttons, () => this.buttons.replaceChildren(...rows.flatMap((row) =>
      [...(row.field === undefined ? [] : [row.field]), button(row.words, () => void this.run(row))])));
  }

  private async run(row: Command) {
    const reason = this.reason.value;
    if (reason.trim() === '') {
      this.said.textContent = 'Give a reason first.';
      this.reason.focus();
      return;
    }
    this.said.textContent = `${row.words} …`;
    try {
      await row.run(reason.trim());
      this.said.textContent = `${row.words}: done.`;
      if (this.reason.value === reason) this.reason.value = '';
      this.done();
    } catch (error) {
      this.said.textContent = `Refused: ${(error as Error).message}`;
    }
  }
}
