// Parts of the fabric as drawings: a root with what is around it, and a rack x spine matrix.
import {el, Tooltip} from '../dom';
import type {Fabric} from './api';
import {cell, svg} from './ui';

type Tier = Fabric['tiers'][number];

// The root and the switches that it is cabled to, upper ones above.
export function neighbourhood(fabric: Fabric, root: string[]) {
  const most = 24;
  for (const tier of fabric.tiers) {
    const rows = root.map((name) => tier.row_names.indexOf(name)).filter((at) => at >= 0);
    const columns = root.map((name) => tier.column_names.indexOf(name)).filter((at) => at >= 0);
    if (rows.length + columns.length === 0) continue;
    const cables = tier.cables.filter(([row, column]) =>
      (rows.length === 0 || rows.includes(row)) || (columns.length > 0 && columns.includes(column)));
    const pick = (at: 0 | 1, first: number[]) =>
      [...new Set([...first, ...cables.map((cable) => cable[at])])].slice(0, most).sort((a, b) => a - b);
    const [below, above] = [pick(0, rows), pick(1, columns)];
    const [width, height] = [480, 150];
    const x = (list: number[], at: number) => ((list.indexOf(at) + 0.5) * width) / list.length;
    const isRoot = (row: number, column: number) => rows.length > 0 && columns.length > 0
      ? rows.includes(row) && columns.includes(column) : rows.includes(row) || columns.includes(column);
    const lines = cables.filter(([row, column]) => below.includes(row) && above.includes(column))
      .sort((a, b) => Number(isRoot(a[0], a[1])) - Number(isRoot(b[0], b[1])))
      .map(([row, column]) => svg('line', {x1: x(below, row), x2: x(above, column), y1: height - 34, y2: 34,
                                           class: isRoot(row, column) ? 'root' : ''}));
    const nodes = (list: number[], names: string[], y: number, roots: number[]) => list.flatMap((at) => [
      svg('rect', {x: x(list, at) - 6, y: y - 6, width: 12, height: 12, rx: 2, class: roots.includes(at) ? 'root' : ''},
          svg('title', {}, document.createTextNode(names[at] ?? ''))),
      ...(roots.includes(at) || list.length <= 6 ? [svg('text', {x: Math.min(Math.max(x(list, at), 30), width - 30),
        y: y < height / 2 ? y - 14 : y + 24, 'text-anchor': 'middle'}, document.createTextNode(names[at] ?? ''))] : [])]);
    return el('figure', {class: 'around'},
      svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${root.join(' and ')} and what they are cabled to`},
          ...lines, ...nodes(below, tier.row_names, height - 34, rows), ...nodes(above, tier.column_names, 34, columns)),
      el('figcaption', {}, el('small', {}, `${tier.columns} above, ${tier.rows} below` +
        (cables.length > most ? `; at most ${most} of each are drawn` : ''))));
  }
  return undefined;
}

export interface Matrix {
  rows: string[];
  columns: string[];
  label: string;
  // Of a cell: a class of the legend, or a colour, and what to say; undefined: there is nothing.
  at: (row: number, column: number) => {colour: string; words: string; to?: string} | undefined;
}

// Cells on a canvas, by pointer and by keyboard (arrows, Enter). Columns stand across.
export function matrix(of: Matrix) {
  const canvas = el('canvas', {tabindex: '0', role: 'img', 'aria-label': of.label}) as HTMLCanvasElement;
  const box = el('div', {class: 'heat'}, canvas);
  const said = el('p', {class: 'lead', 'aria-live': 'polite'}, 'Point at a cell, or use the arrow keys.');
  const tooltip = new Tooltip(box);
  let [row, column] = [0, 0];
  const left = 74;
  const frame = () => {
    const width = Math.max(box.clientWidth, 200);
    const w = Math.max((width - left - 2) / of.columns.length, 1);
    return {width, w, h: Math.max(3, Math.min(16, 640 / of.rows.length))};
  };
  const draw = () => {
    const {width, w, h} = frame();
    const scale = window.devicePixelRatio || 1;
    const height = h * of.rows.length + 20;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext('2d');
    if (pen === null) return;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue('--muted').trim();
    pen.scale(scale, scale);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const gap = w > 6 && h > 6 ? 1 : 0.25;
    of.rows.forEach((_, r) => of.columns.forEach((_, c) => {
      const cellAt = of.at(r, c);
      if (cellAt === undefined) return;
      pen.fillStyle = cellAt.colour.startsWith('--') ? style.getPropertyValue(cellAt.colour).trim() : cellAt.colour;
      pen.fillRect(left + c * w, 18 + r * h, w - gap, h - gap);
    }));
    pen.fillStyle = text;
    const every = Math.ceil(14 / h);
    of.rows.forEach((name, r) => { if (r % every === 0) pen.fillText(name, 0, 18 + (r + 0.5) * h, left - 4); });
    const across = Math.ceil(60 / w);
    of.columns.forEach((name, c) => { if (c % across === 0) pen.fillText(name, left + c * w, 8, across * w); });
  };
  const show = (isTip: boolean) => {
    const found = of.at(row, column);
    const words = `${of.rows[row] ?? ''} and ${of.columns[column] ?? ''}: ${found?.words ?? 'nothing between them'}`;
    said.textContent = words;
    const {w, h} = frame();
    if (isTip) tooltip.show(left + (column + 0.5) * w, 18 + row * h, [el('div', {}, words)]);
  };
  canvas.addEventListener('pointermove', (event) => {
    const {w, h} = frame();
    [row, column] = [Math.floor((event.offsetY - 18) / h), Math.floor((event.offsetX - left) / w)];
    if (row < 0 || column < 0 || row >= of.rows.length || column >= of.columns.length) tooltip.hide();
    else show(true);
  });
  canvas.addEventListener('pointerleave', () => tooltip.hide());
  const open = () => {
    const to = of.at(row, column)?.to;
    if (to !== undefined) location.hash = to;
  };
  canvas.addEventListener('click', open);
  canvas.addEventListener('keydown', (event) => {
    const step = ({ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]} as Record<string, [number, number]>)[event.key];
    if (event.key === 'Enter') open();
    if (step === undefined) return;
    event.preventDefault();
    row = Math.min(Math.max(row + step[0], 0), of.rows.length - 1);
    column = Math.min(Math.max(column + step[1], 0), of.columns.length - 1);
    show(true);
  });
  new ResizeObserver(draw).observe(box);
  return {root: el('div', {class: 'matrix'}, box, said), draw};
}

export const cableOf = (tier: Tier, row: number, column: number) =>
  cell(tier.row_names[row] ?? '', tier.column_names[column] ?? '');
