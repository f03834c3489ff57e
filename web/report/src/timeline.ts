// The pipeline of one step: a lane per role, compute above, communication below.
import type {Timeline} from './data';
import {el, Tooltip} from './dom';
import * as format from './format';
import type {Theme} from './theme';

const ticks = 65536;
const zoomMax = 2048;
const bottom = 26;
const narrow = 4;  // pixels; below it pieces are not told apart

interface Piece {
  start: number;
  end: number;
  kind: string;  // "compute", or what communication serves
  name: string;
}

interface Lane {
  name: string;
  compute: Piece[];
  communication: Piece[];
}

function lanesOf(timeline: Timeline): Lane[] {
  const lanes: Lane[] =
    timeline.lanes.map((name) => ({name, compute: [], communication: []}));
  for (let at = 0; at + 4 < timeline.spans.length; at += 5) {
    const [lane, start, length, kind, name] = timeline.spans.slice(at, at + 5) as
      [number, number, number, number, number];
    const category = timeline.categories[kind] ?? '';
    const piece = {start, end: start + length, kind: category, name: timeline.names[name] ?? ''};
    lanes[lane]?.[category === 'compute' ? 'compute' : 'communication'].push(piece);
  }
  return lanes;
}

// "forward 3.0" and "forward 4.1" are one sort of work.
const sort = (name: string) => name.split(/[\s\d.#:]/, 1)[0] ?? '';

// Sorts of compute by first use: each is a shade of one colour.
function shadesOf(lanes: Lane[]): string[] {
  return [...new Set(lanes.flatMap((lane) => lane.compute.map((piece) => sort(piece.name))))];
}

const shadeMax = 3;

class Chart {
  private readonly canvas = el('canvas', {tabindex: '0', role: 'img'}) as HTMLCanvasElement;
  private readonly frame = el('div', {class: 'timeline'}, this.canvas);
  private readonly tooltip = new Tooltip(this.frame);
  private readonly lanes: Lane[];
  private readonly shades: string[];
  private readonly observer = new ResizeObserver(() => this.draw());
  private readonly buttons: HTMLButtonElement[];
  private view = {from: 0, to: ticks};
  private drag: {from: number; to: number} | undefined;

  constructor(host: HTMLElement, private readonly timeline: Timeline,
              private readonly theme: Theme) {
    this.lanes = lanesOf(timeline);
    this.shades = shadesOf(this.lanes);
    this.buttons = [this.button('+', 'Zoom in', () => this.zoom(0.5)),
                    this.button('−', 'Zoom out', () => this.zoom(2)),
                    this.button('Whole step', 'Whole step', () => this.show(0, ticks))];
    this.canvas.setAttribute('aria-label', this.label());
    this.listen();
    host.append(el('figure', {class: 'panel wide'},
                   el('figcaption', {}, el('strong', {}, 'Timeline'),
                      el('small', {}, this.caption())),
                   el('div', {class: 'toolbar'}, this.legend(),
                      el('div', {class: 'zoom'}, ...this.buttons)), this.frame));
    this.observer.observe(this.frame);
    this.draw();
  }

  end() {
    this.observer.disconnect();
  }

  private label() {
    return `Timeline of ${this.timeline.job}: ${this.lanes.length} roles over ` +
           `${format.seconds(this.timeline.duration_s)}. Plus and minus zoom, arrows move.`;
  }

  private caption() {
    const {lanes_left_out: left, merged_s: merged} = this.timeline;
    return ['One lane per role: compute above, communication below, blank is idle. Drag to zoom. Where ' +
              'spans are too narrow to tell apart, the height of a colour is its share of the time.',
            left > 0 ? `${format.count(left)} roles are left out.` : '',
            merged > 0 ? `Neighbours shorter than ${format.seconds(merged)} are merged.` : '']
      .filter((part) => part !== '').join(' ');
  }

  private button(sign: string, name: string, act: () => void) {
    const node = el('button', {type: 'button', 'aria-label': name}, sign) as HTMLButtonElement;
    node.addEventListener('click', act);
    return node;
  }

  private legend() {
    const entry = (colour: string, name: string) => {
      const box = el('i');
      box.style.background = colour;
      return el('span', {class: 'swatch'}, box, name);
    };
    const kinds = [...new Set(this.lanes.flatMap((lane) =>
      lane.communication.map((piece) => piece.kind)))].sort();
    return el('p', {class: 'legend'},
              ...this.shades.slice(0, shadeMax).map((name, at) =>
                entry(this.shade(at), at === shadeMax - 1 && this.shades.length > shadeMax
                  ? 'other compute' : name || 'compute')),
              ...kinds.map((kind) => entry(this.colour(kind), kind.toUpperCase())));
  }

  private shade(at: number) {
    return this.theme.compute[Math.min(at, shadeMax - 1)] ?? this.theme.other;
  }

  private colour(kind: string) {
    const {parts} = this.theme;
    return (Object.hasOwn(parts, kind) ? parts[kind] : undefined) ?? parts['other'] ?? '';
  }

  private get laneHeight() {
    return this.lanes.length > 32 ? 14 : 22;
  }

  private get left() {
    const longest = Math.max(...this.lanes.map((lane) => lane.name.length));
    return Math.min(Math.max(longest * 7 + 10, 30), this.frame.clientWidth / 4);
  }

  private get width() {
    return Math.max(this.frame.clientWidth - this.left - 8, 50);
  }

  private x(tick: number) {
    return this.left + ((tick - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }

  private tick(x: number) {
    const share = Math.min(Math.max((x - this.left) / this.width, 0), 1);
    return this.view.from + share * (this.view.to - this.view.from);
  }

  private seconds(tick: number) {
    return (tick / ticks) * this.timeline.duration_s;
  }

  private draw() {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [this.frame.clientWidth, this.lanes.length * this.laneHeight + bottom];
    if (width === 0) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext('2d');
    if (pen === null) return;
    pen.scale(scale, scale);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    this.lanes.forEach((lane, at) => this.drawLane(pen, lane, at * this.laneHeight));
    this.drawAxis(pen, this.lanes.length * this.laneHeight);
    this.drawSelection(pen);
    const whole = this.view.from === 0 && this.view.to === ticks;
    this.buttons.forEach((button, at) => button.toggleAttribute('disabled', at > 0 && whole));
  }

  private drawLane(pen: CanvasRenderingContext2D, lane: Lane, top: number) {
    const height = this.laneHeight - 3;
    const split = Math.round(height * 0.62);
    pen.fillStyle = this.theme.page;
    pen.fillRect(this.left, top, this.width, height);
    this.drawPieces(pen, lane.compute, top, split, (piece) =>
      this.shade(this.shades.indexOf(sort(piece.name))));
    this.drawPieces(pen, lane.communication, top + split, height - split, (piece) =>
      this.colour(piece.kind));
    pen.fillStyle = this.theme.muted;
    pen.textAlign = 'right';
    pen.fillText(lane.name, this.left - 6, top + height / 2, this.left - 8);
  }

  private drawPieces(pen: CanvasRenderingContext2D, pieces: Piece[], top: number, height: number,
                     colour: (piece: Piece) => string) {
    const seen = pieces.filter((piece) => piece.end > this.view.from && piece.start < this.view.to);
    const long = seen.reduce((sum, piece) => sum + this.x(piece.end) - this.x(piece.start), 0);
    if (seen.length > 1 && long < narrow * seen.length) {
      this.drawShares(pen, seen, Math.max(narrow, (3 * long) / seen.length), top, height, colour);
      return;
    }
    for (const piece of seen) {
      const from = Math.max(this.x(piece.start), this.left);
      const to = Math.min(this.x(piece.end), this.left + this.width);
      pen.fillStyle = colour(piece);
      // A hairline between neighbours that are wide enough to have one.
      const gap = to - from > 3 ? 0.5 : 0;
      pen.fillRect(from, top, Math.max(to - from - gap, 0.3), height);
    }
  }

  // Pieces too narrow to tell apart would look like hatching: columns of some of them show what share
  // of the time each colour has, in the order of first appearance, from below.
  private drawShares(pen: CanvasRenderingContext2D, pieces: Piece[], column: number, top: number,
                     height: number, colour: (piece: Piece) => string) {
    const colours = [...new Set(pieces.map(colour))];
    const columns = Math.ceil(this.width / column);
    const shares = colours.map(() => new Float64Array(columns));
    for (const piece of pieces) {
      const share = shares[colours.indexOf(colour(piece))];
      const from = (Math.max(this.x(piece.start), this.left) - this.left) / column;
      const to = (Math.min(this.x(piece.end), this.left + this.width) - this.left) / column;
      for (let at = Math.floor(from); share !== undefined && at < Math.min(to, columns); at += 1) {
        share[at] = (share[at] ?? 0) + Math.min(to, at + 1) - Math.max(from, at);
      }
    }
    for (let at = 0; at < columns; at += 1) {
      let bottom = top + height;
      const left = this.left + at * column;
      const width = Math.min(column, this.left + this.width - left);
      const all = shares.reduce((sum, share) => sum + (share[at] ?? 0), 0);
      shares.forEach((share, kind) => {
        const part = share[at] ?? 0;
        if (part === 0) return;
        const tall = Math.max((part / Math.max(all, 1)) * height, 1.5);
        pen.fillStyle = colours[kind] ?? '';
        pen.fillRect(left, bottom - tall, width, tall);
        bottom -= tall;
      });
    }
  }

  private drawAxis(pen: CanvasRenderingContext2D, top: number) {
    const [from, to] = [this.seconds(this.view.from), this.seconds(this.view.to)];
    const unit = to < 1e-3 ? {size: 1e-6, name: 'µs'} : to < 1 ? {size: 1e-3, name: 'ms'}
                                                               : {size: 1, name: 's'};
    const wanted = Math.max(Math.floor(this.width / 80), 3);
    const step = format.ticks((to - from) / unit.size, wanted)[1] ?? 1;
    pen.fillStyle = this.theme.muted;
    pen.strokeStyle = this.theme.muted;
    for (let at = Math.ceil(from / unit.size / step); at * step * unit.size <= to; at += 1) {
      const x = this.x((at * step * unit.size / this.timeline.duration_s) * ticks);
      const text = `${Number((at * step).toPrecision(9))} ${unit.name}`;
      const half = pen.measureText(text).width / 2;
      pen.textAlign = 'center';
      pen.fillRect(x, top, 1, 4);
      if (x + half <= this.left + this.width + 8) pen.fillText(text, x, top + 14);
    }
  }

  private drawSelection(pen: CanvasRenderingContext2D) {
    if (this.drag === undefined) return;
    const [a, b] = [this.x(this.drag.from), this.x(this.drag.to)];
    pen.fillStyle = this.theme.selectedFill;
    pen.fillRect(Math.min(a, b), 0, Math.abs(b - a), this.lanes.length * this.laneHeight);
  }

  // Keeps the view inside the step and no narrower than the data is fine.
  private show(from: number, to: number) {
    const width = Math.min(Math.max(to - from, ticks / zoomMax), ticks);
    const start = Math.min(Math.max((from + to - width) / 2, 0), ticks - width);
    this.view = {from: start, to: start + width};
    this.tooltip.hide();
    this.draw();
  }

  private zoom(factor: number) {
    const [middle, width] = [(this.view.from + this.view.to) / 2, this.view.to - this.view.from];
    this.show(middle - (width * factor) / 2, middle + (width * factor) / 2);
  }

  private pan(share: number) {
    const by = (this.view.to - this.view.from) * share;
    this.show(this.view.from + by, this.view.to + by);
  }

  private listen() {
    this.canvas.addEventListener('pointerdown', (event) => {
      const at = this.tick(event.offsetX);
      this.drag = {from: at, to: at};
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointermove', (event) => this.move(event));
    this.canvas.addEventListener('pointerup', () => this.release());
    this.canvas.addEventListener('pointercancel', () => {
      this.drag = undefined;
      this.draw();
    });
    this.canvas.addEventListener('pointerleave', () => this.tooltip.hide());
    this.canvas.addEventListener('dblclick', () => this.show(0, ticks));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  private release() {
    const drag = this.drag;
    this.drag = undefined;
    if (drag === undefined) return;
    const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    if (this.x(to) - this.x(from) > 5) this.show(from, to);
    else this.draw();
  }

  private key(event: KeyboardEvent) {
    const acts: Record<string, () => void> = {
      '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
      'ArrowLeft': () => this.pan(-0.25), 'ArrowRight': () => this.pan(0.25),
      'Home': () => this.show(0, ticks),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  }

  private move(event: PointerEvent) {
    if (this.drag !== undefined) {
      this.drag.to = this.tick(event.offsetX);
      this.draw();
    }
    const lane = this.lanes[Math.floor(event.offsetY / this.laneHeight)];
    const inside = event.offsetX >= this.left && event.offsetX <= this.left + this.width;
    if (lane === undefined || !inside) return this.tooltip.hide();
    const at = this.tick(event.offsetX);
    const hit = (pieces: Piece[]) =>
      pieces.find((piece) => piece.start <= at && at < piece.end);
    const low = (event.offsetY % this.laneHeight) / (this.laneHeight - 3) > 0.62;
    const [compute, communication] = [hit(lane.compute), hit(lane.communication)];
    const piece = low ? communication ?? compute : compute ?? communication;
    this.tooltip.show(event.offsetX, event.offsetY, this.tip(lane, piece, at));
  }

  private tip(lane: Lane, piece: Piece | undefined, at: number) {
    const role = el('div', {}, lane.name);
    if (piece === undefined) {
      return [role, el('div', {}, `idle at ${format.seconds(this.seconds(at))}`)];
    }
    const kind = piece.kind === 'compute' ? '' : `${piece.kind.toUpperCase()}: `;
    return [role, el('div', {}, `${kind}${piece.name}`),
            el('div', {}, `${format.seconds(this.seconds(piece.end - piece.start))} from ` +
                            format.seconds(this.seconds(piece.start)))];
  }
}

// Appends to `host`; the result ends the chart.
export function timelineChart(host: HTMLElement, timeline: Timeline, theme: Theme): () => void {
  const chart = new Chart(host, timeline, theme);
  return () => chart.end();
}
