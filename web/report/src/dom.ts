// Elements are made by name and filled with text nodes: no text of a scenario is parsed as HTML.

type Child = Node | string | undefined;

export function el(name: string, props: Record<string, string> = {}, ...children: Child[]) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  for (const child of children) if (child !== undefined) node.append(child);
  return node;
}

// The same for drawings.
const space = 'http://www.w3.org/2000/svg';
export function svg(name: string, props: Record<string, string | number>, ...children: (Node | string)[]) {
  const node = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

export function section(id: string, title: string, lead: string, ...children: Child[]) {
  const heading = el('h2', {id: `${id}-title`}, title);
  return el('section', {id, 'aria-labelledby': `${id}-title`}, heading,
            lead === '' ? undefined : el('p', {class: 'lead'}, lead), ...children);
}

// The head of a command's page: its title, what it is about, and what it found.
export function pageHeader(command: string, lead: string, findings: string[]) {
  return el('header', {}, el('p', {class: 'brand'}, `weft ${command}`), el('h1', {}, document.title.replace(new RegExp(` - weft ${command}$`), '')),
            el('p', {class: 'lead'}, lead), el('ul', {class: 'findings'}, ...findings.map((line) => el('li', {}, line))));
}

// A colour and what it stands for.
export function swatch(label: string, colour?: string, name = 'span') {
  const box = el('i');
  if (colour !== undefined) box.style.background = colour;
  return el(name, {class: 'swatch'}, box, label);
}

export interface Column {
  title: string;
  align?: 'left' | 'right';
}

export const text = (title: string): Column => ({title, align: 'left'});
export const number = (title: string): Column => ({title, align: 'right'});

// The first column heads its row. Scrolls sideways inside its own box.
export function table(caption: string, columns: Column[], rows: (Node | string)[][]) {
  const cls = (at: number) => (columns[at]?.align === 'left' ? 'text' : 'number');
  const head = el('tr', {}, ...columns.map((column, at) =>
    el('th', {scope: 'col', class: cls(at)}, column.title)));
  const body = rows.map((row) => el('tr', {}, ...row.map((cell, at) =>
    at === 0 ? el('th', {scope: 'row', class: cls(at)}, cell) : el('td', {class: cls(at)}, cell))));
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
            el('table', {}, el('caption', {}, caption), el('thead', {}, head),
               el('tbody', {}, ...body)));
}

// A box that follows the pointer; hidden until shown.
export class Tooltip {
  private readonly box = el('div', {class: 'tooltip', role: 'status'});

  constructor(private readonly host: HTMLElement) {
    this.hide();
    host.append(this.box);
  }

  // `x` and `y` in pixels of the host.
  show(x: number, y: number, lines: Node[]) {
    this.box.replaceChildren(...lines);
    this.box.hidden = false;
    const room = this.host.clientWidth - this.box.offsetWidth;
    const left = x + 14 <= room ? x + 14 : Math.max(0, x - 14 - this.box.offsetWidth);
    this.box.style.left = `${left}px`;
    this.box.style.top = `${Math.max(0, y - this.box.offsetHeight - 10)}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}
