// A grid of coloured cells on a canvas: load of every link between two roles of switches, or anything by time.
import type {HeatMap, Report} from './data';
import {variantsOf} from './data';
import {el, Tooltip} from './dom';
import * as format from './format';
import {rampBar, rampColour, type Theme} from './theme';

type Cells = (number | null)[][];

export interface Grid {
  cells: Cells;  // [along x][along y]; null: there is nothing
  max: number;   // of the scale
  label: string;
  titles: [x: string, y: string];
  per: [x: number, y: number];  // what a cell stands for, in units of the axes
  names?: string[];             // of the rows, instead of numbers
  describe: (x: number, y: number) => Node[];
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  across: number;  // cells along x
  down: number;    // cells along y
  named: boolean;  // rows have their names beside them
}

const margin = {left: 52, right: 8, top: 6, bottom: 40};
const letter = 6.4, nameMax = 26;
const short = (name: string) => (name.length <= nameMax ? name : `${name.slice(0, nameMax - 1)}…`);

const rolesOf = (map: HeatMap) => `${map.row_role} ${map.column_role}`;

// One scale for all variants and both directions of the maps of two roles, so that colours compare.
export function loadMaxima(report: Report): Map<string, number> {
  const maxima = new Map<string, number>();
  for (const variant of variantsOf(report)) {
    for (const map of variant.value.heat_maps) {
      let max = maxima.get(rolesOf(map)) ?? 0;
      for (const row of [...map.up, ...map.down]) for (const v of row) max = Math.max(max, v ?? 0);
      maxima.set(rolesOf(map), max);
    }
  }
  for (const [roles, max] of maxima) maxima.set(roles, max > 0 ? Math.ceil(max * 20 - 1e-9) / 20 : 1);
  return maxima;
}

function frameOf(grid: Grid, width: number): Frame {
  const across = grid.cells.length;
  const down = grid.cells[0]?.length ?? 1;
  const cell = grid.names === undefined ? Math.min(Math.max(Math.floor(240 / down), 4), 14)
    : Math.min(Math.max(Math.floor(600 / down), 4), 18);
  const named = grid.names !== undefined && cell >= 12 && width > 560;
  const left = named ? 16 + letter * Math.max(...grid.names?.map((name) => short(name).length) ?? []) : margin.left;
  return {left, top: margin.top, width: width - left - margin.right, height: cell * down, across, down, named};
}

// Cells that a link is missing from are crossed, so that "no load" and "no link" differ.
function drawCells(pen: CanvasRenderingContext2D, grid: Grid, frame: Frame, theme: Theme) {
  const scale = window.devicePixelRatio || 1;
  const snap = (value: number) => Math.round(value * scale) / scale;
  const x = (at: number) => snap(frame.left + (at * frame.width) / frame.across);
  const y = (at: number) => snap(frame.top + (at * frame.height) / frame.down);
  grid.cells.forEach((line, row) => line.forEach((load, column) => {
    const [w, h] = [x(row + 1) - x(row), y(column + 1) - y(column)];
    if (load !== null) {
      pen.fillStyle = rampColour(theme.ramp, load / grid.max);
      pen.fillRect(x(row), y(column), w, h);
      return;
    }
    pen.fillStyle = theme.line;
    pen.fillRect(x(row), y(column), w, h);
    pen.strokeStyle = theme.muted;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(row), y(column + 1));
    pen.lineTo(x(row + 1), y(column));
    pen.stroke();
  }));
}

function drawAxes(pen: CanvasRenderingContext2D, grid: Grid, frame: Frame, theme: Theme) {
  pen.fillStyle = theme.muted;
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.textAlign = 'right';
  const marks = (cells: number, per: number, wanted: number) =>
    format.ticks(cells * per, wanted).filter((v) => Number.isInteger(v / per) && v / per < cells);
  if (frame.named) {
    grid.names?.forEach((name, at) => pen.fillText(short(name), frame.left - 6, frame.top + ((at + 0.5) * frame.height) / frame.down));
  } else {
    for (const mark of marks(frame.down, grid.per[1], 6)) {
      const at = mark / grid.per[1] + 0.5;
      pen.fillText(String(mark), frame.left - 6, frame.top + (at * frame.height) / frame.down);
    }
  }
  pen.textAlign = 'center';
  pen.textBaseline = 'top';
  const bottom = frame.top + frame.height;
  for (const mark of marks(frame.across, grid.per[0], Math.max(frame.width / 90, 2))) {
    const at = mark / grid.per[0] + 0.5;
    pen.fillText(String(mark), frame.left + (at * frame.width) / frame.across, bottom + 5);
  }
  pen.fillText(grid.titles[0], frame.left + frame.width / 2, bottom + 22);
  if (frame.named) return;
  pen.save();
  pen.translate(8, frame.top + frame.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(grid.titles[1], 0, -6);
  pen.restore();
}

export class MapView {
  private readonly canvas = el('canvas', {tabindex: '0', role: 'img'}) as HTMLCanvasElement;
  private readonly box = el('div', {class: 'heat'}, this.canvas);
  private readonly tooltip = new Tooltip(this.box);
  private frame: Frame;
  private at: {row: number; column: number} | undefined;

  constructor(host: HTMLElement, private readonly grid: Grid, private readonly theme: Theme) {
    host.append(this.box);
    this.canvas.setAttribute('aria-label', `${grid.label}; arrow keys move from cell to cell`);
    this.frame = frameOf(grid, this.box.clientWidth);
    this.draw();
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => this.moveTo(undefined));
    this.canvas.addEventListener('blur', () => this.moveTo(undefined));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  draw() {
    const width = this.box.clientWidth;
    if (width === 0) return;
    this.frame = frameOf(this.grid, width);
    const height = this.frame.top + this.frame.height + margin.bottom;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext('2d');
    if (pen === null) return;
    pen.scale(scale, scale);
    drawCells(pen, this.grid, this.frame, this.theme);
    drawAxes(pen, this.grid, this.frame, this.theme);
    if (this.at !== undefined) this.outline(pen, this.at.row, this.at.column);
  }

  private outline(pen: CanvasRenderingContext2D, row: number, column: number) {
    const [w, h] = [this.frame.width / this.frame.across, this.frame.height / this.frame.down];
    pen.strokeStyle = this.theme.text;
    pen.lineWidth = 2;
    pen.strokeRect(this.frame.left + row * w - 1, this.frame.top + column * h - 1, w + 2, h + 2);
  }

  private point(event: PointerEvent) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.frame.left) / this.frame.width;
    const y = (event.clientY - box.top - this.frame.top) / this.frame.height;
    if (x < 0 || x >= 1 || y < 0 || y >= 1) return this.moveTo(undefined);
    this.moveTo({row: Math.floor(x * this.frame.across), column: Math.floor(y * this.frame.down)});
  }

  private key(event: KeyboardEvent) {
    const steps: Record<string, [number, number]> =
      {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const clamp = (value: number, cells: number) => Math.min(Math.max(value, 0), cells - 1);
    const from = this.at ?? {row: -step[0], column: -step[1]};
    this.moveTo({row: clamp(from.row + step[0], this.frame.across),
                 column: clamp(from.column + step[1], this.frame.down)});
  }

  private moveTo(at: {row: number; column: number} | undefined) {
    if (at?.row === this.at?.row && at?.column === this.at?.column) return;
    this.at = at;
    this.draw();
    if (at === undefined) return this.tooltip.hide();
    this.tooltip.show(this.frame.left + ((at.row + 0.5) * this.frame.width) / this.frame.across,
                      this.frame.top + (at.column * this.frame.height) / this.frame.down,
                      this.grid.describe(at.row, at.column));
  }
}

function legend(max: number, theme: Theme) {
  return el('p', {class: 'legend'}, el('span', {}, 'Link load: 0', rampBar(theme), format.percent(max)),
            el('span', {class: 'key missing'}, 'no live link'));
}

function describe(map: HeatMap, cells: Cells, from: string, to: string, row: number, column: number): Node[] {
  const load = cells[row]?.[column] ?? null;
  const ends = {[map.row_role]: map.rows[row] ?? '', [map.column_role]: map.columns[column] ?? ''};
  const text = load === null ? 'no live link' : `load ${format.percent(load)}`;
  const merged = map.rows_per_cell * map.columns_per_cell > 1;
  return [el('div', {}, `${ends[from] ?? ''} → ${ends[to] ?? ''}`),
          el('div', {}, merged ? `${text} (the hottest of this block)` : text)];
}

function gridOf(map: HeatMap, cells: Cells, from: string, to: string, max: number): Grid {
  return {cells, max, label: `Load of ${from} to ${to} links`, titles: [`${map.row_role} index`, `${map.column_role} index`],
          per: [map.rows_per_cell, map.columns_per_cell],
          describe: (row, column) => describe(map, cells, from, to, row, column)};
}

function blockRule(map: HeatMap): string {
  const {rows_per_cell: rows, columns_per_cell: columns} = map;
  if (rows * columns === 1) return '';
  return `Each cell stands for ${rows} × ${columns} switches (${map.row_role} × ` +
         `${map.column_role}) and shows the hottest link among them.`;
}

// Appends the maps of one variant to `host`; the result ends them. `maxima`: of loadMaxima().
export function heatMaps(host: HTMLElement, maps: HeatMap[], maxima: Map<string, number>, theme: Theme) {
  const views = maps.flatMap((map) => {
    const max = maxima.get(rolesOf(map)) ?? 1;
    host.append(legend(max, theme));
    return [{cells: map.up, from: map.row_role, to: map.column_role},
            {cells: map.down, from: map.column_role, to: map.row_role}].map(({cells, from, to}) => {
      const figure = el('figure', {class: 'panel wide'},
                        el('figcaption', {}, el('strong', {}, `${from} → ${to}`), el('small', {}, blockRule(map))));
      host.append(figure);
      return new MapView(figure, gridOf(map, cells, from, to, max), theme);
    });
  });
  const observer = new ResizeObserver(() => views.forEach((view) => view.draw()));
  observer.observe(host);
  return () => observer.disconnect();
}
