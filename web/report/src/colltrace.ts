// The traces of a job: who waits by rank and kind of group, who waits for whom, and the blocked operation in time.
import {axis, mark} from './bandwidth';
import {el, number, pageHeader, section, table, text, svg} from './dom';
import * as format from './format';
import {dimensions, rampBar, rampColour, readTheme, type Theme} from './theme';

interface Verdict {
  finding: string;
  meaning: string;
  ranks: number[];
  groups: string[];  // the first three
  group_count: number;
  seq: number;
  operation: string;
  expected: string;
  found: string;
  factor: number;
}
interface WaitNode {
  title: string;
  example: string;
  level: number;  // 0: a verdict
  groups: number;
  ranks: number;
}
interface Span {
  begin: number;
  end: number;
  kind: number;
  operation: number;
  seq: number;
  open: boolean;
  blocked: boolean;
}
export interface JobTrace {
  world: number;
  ranks: number;
  missing: number;
  operations: number;
  waiting: number;
  hang: boolean;
  verdicts: Verdict[];
  waits: {ranks_per_cell: number; share: boolean; rows: {kind: string; cells: number[]}[]};
  graph: {nodes: WaitNode[]; edges: {from: number; to: number; groups: number}[]; unconnected: number};
  timeline: {operation: string; window_s: number; kinds: string[]; operations: string[];
             rows: {rank: number; named: boolean; traced: boolean; spans: Span[]}[]; left_out: number};
}

const few = (ranks: number[]) =>
  ranks.slice(0, 8).join(', ') + (ranks.length > 8 ? ` and ${format.count(ranks.length - 8)} more` : '');
const counted = (count: number, noun: string) => `${format.count(count)} ${noun}${count === 1 ? '' : 's'}`;

function who(verdict: Verdict): string {
  if (verdict.ranks.length > 0) return `${verdict.ranks.length === 1 ? 'Rank' : 'Ranks'} ${few(verdict.ranks)}`;
  const more = verdict.group_count - verdict.groups.length;
  return `${verdict.group_count === 1 ? 'Group' : 'Groups'} ${verdict.groups.join(', ')}${more > 0 ? ` and ${format.count(more)} more` : ''}`;
}

const finding = (verdict: Verdict) =>
  `${who(verdict)}: ${verdict.finding}: ${verdict.meaning}${verdict.factor > 0 ? `, ${verdict.factor.toFixed(2)} times the time of its peers` : ''}.`;

// "dp", "dp sends" and "pp" have the colours that they have in a run's report.
function kindColour(kind: string, theme: Theme): string {
  const name = dimensions.find((dimension) => kind.toLowerCase().split(/[^a-z]/).includes(dimension));
  return theme.parts[name ?? 'other'] ?? theme.other;
}

function waits(trace: JobTrace, theme: Theme) {
  const {rows, share, ranks_per_cell: each} = trace.waits;
  if (rows.length === 0) return [el('p', {class: 'lead'}, 'The traces have no times from which waits could be told.')];
  const most = Math.max(1e-9, ...rows.map((row) => row.cells.reduce((a, b) => Math.max(a, b), 0)));
  const shown = (wait: number) => (share ? format.percent(wait) : format.seconds(wait));
  const named = new Set(trace.verdicts.flatMap((verdict) => verdict.ranks.map((rank) => Math.floor(rank / each))));
  const strips = rows.map((row) => {
    const cells = row.cells.map((wait, at) => {
      const last = Math.min((at + 1) * each, trace.world) - 1;
      const title = `rank${last > at * each ? `s ${at * each}-${last}` : ` ${last}`}: ${wait < 0 ? 'no trace' : `${each > 1 ? 'up to ' : ''}${shown(wait)}`}`;
      const node = el('i', {title, class: wait < 0 ? 'unknown' : ''});
      if (wait >= 0) node.style.background = rampColour(theme.ramp, wait / most);
      if (named.has(at)) node.classList.add('named');
      return node;
    });
    const longest = row.cells.reduce((a, b) => Math.max(a, b), 0);
    return el('div', {class: 'zone'}, el('span', {class: 'name'}, row.kind, el('br'), el('small', {}, `up to ${shown(longest)}`)),
              el('div', {class: 'squares', role: 'img', 'aria-label': `Waits of ranks in ${row.kind}, up to ${shown(longest)}`}, ...cells));
  });
  return [el('p', {class: 'legend'}, el('span', {}, 'Waits: 0'), rampBar(theme), el('span', {}, shown(most)),
             el('span', {class: 'swatch'}, el('i', {class: 'unknown'}), 'no trace'),
             named.size > 0 ? el('span', {class: 'swatch'}, el('i', {class: 'named'}), 'named by a verdict') : undefined),
          el('div', {class: 'panel wide waits'}, ...strips)];
}

// What is waited for on top; below, level by level, the operations that wait for it.
function drawGraph(trace: JobTrace, width: number, theme: Theme): SVGElement {
  const {nodes, edges} = trace.graph;
  const levels = nodes.reduce((most, node) => Math.max(most, node.level), 0);
  const boxHigh = 44, step = 92, letter = 6.6;
  const places = new Map<WaitNode, {x: number; y: number; wide: number}>();
  let top = 1;
  for (let level = 0; level <= levels; level += 1) {
    const row = nodes.filter((node) => node.level === level);
    // As many in a line as have room.
    const slots = Math.max(1, Math.min(row.length, Math.floor(width / 130)));
    row.forEach((node, at) => {
      const line = Math.floor(at / slots), inLine = Math.min(slots, row.length - line * slots);
      const slot = width / inLine;
      places.set(node, {x: slot * ((at % slots) + 0.5), y: top + line * (boxHigh + 8),
                        wide: Math.min(slot - 8, Math.max(120, Math.max(node.title.length, 22) * letter + 16))});
    });
    top += (Math.ceil(row.length / slots) - 1) * (boxHigh + 8) + step;
  }
  const fitted = (line: string, wide: number) => {
    const room = Math.floor((wide - 10) / letter);
    return line.length > room ? `${line.slice(0, Math.max(1, room - 1))}…` : line;
  };
  const lines = edges.flatMap((edge) => {
    const [from, to] = [nodes[edge.from], nodes[edge.to]];
    const [a, b] = [from && places.get(from), to && places.get(to)];
    if (from === undefined || to === undefined || a === undefined || b === undefined) return [];
    const line = svg('path', {class: 'wait', d: `M${a.x} ${a.y} C${a.x} ${a.y - 26} ${b.x} ${b.y + boxHigh + 26} ${b.x} ${b.y + boxHigh + 6}`,
                              'stroke-width': 1 + Math.min(4, Math.log2(edge.groups + 1) / 2), 'marker-end': 'url(#to)'});
    line.append(svg('title', {}, `${counted(edge.groups, 'group')} of ${from.title} wait for ${to.title}`));
    return [line];
  });
  const boxes = nodes.map((node) => {
    const {x, y, wide} = places.get(node) ?? {x: 0, y: 0, wide: 0};
    const about = node.level === 0 ? `${node.ranks === 0 ? 'does not end in' : 'waited for in'} ${counted(node.groups, 'group')}`
      : `${counted(node.groups, 'group')}, ${counted(node.ranks, 'rank')}`;
    const box = svg('g', {class: node.level === 0 ? 'node root' : 'node'},
                    svg('rect', {x: x - wide / 2, y, width: wide, height: boxHigh, rx: 4}),
                    svg('text', {x, y: y + 19, 'text-anchor': 'middle'}, fitted(node.title, wide)),
                    svg('text', {x, y: y + 35, 'text-anchor': 'middle', class: 'soft'}, fitted(about, wide)),
                    svg('title', {}, `${node.title}${node.example === '' ? '' : `; ${node.example}`}`));
    if (node.level > 0) box.querySelector('rect')?.setAttribute('stroke', kindColour(node.title, theme));
    return box;
  });
  const high = top - step + boxHigh + 2;
  return svg('svg', {width, height: high, viewBox: `0 0 ${width} ${high}`, role: 'img',
                     'aria-label': `Wait graph: ${nodes.filter((node) => node.level === 0).map((node) => node.title).join('; ')}`},
             svg('defs', {}, svg('marker', {id: 'to', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
                                            markerUnits: 'userSpaceOnUse', orient: 'auto'}, svg('path', {d: 'M0 0 L8 4 L0 8 z'}))), ...lines, ...boxes);
}

function graph(trace: JobTrace, id: string, theme: Theme) {
  const {nodes, unconnected} = trace.graph;
  if (nodes.length === 0) return [];
  const frame = el('div', {class: 'panel wide wait-graph'});
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(frame.clientWidth - 24);
    if (width === drawn || width < 50) return;
    drawn = width;
    frame.replaceChildren(drawGraph(trace, width, theme));
  }).observe(frame);
  const rest = unconnected === 0 ? '' : ` ${counted(unconnected, 'blocked operation')} lead to no verdict and are left out.`;
  return [section(`${id}graph`, 'Who waits for whom',
                  `On top what others wait for; below, the operations that lack it, and those that lack their members, by kind of group.${rest}`, frame,
                  table('Blocked operations', [text('Operations'), number('Level'), number('Groups'), number('Ranks'), text('One of them')],
                        [...nodes].sort((a, b) => a.level - b.level).map((node) => [node.title, String(node.level), format.count(node.groups), format.count(node.ranks), node.example])))];
}

function timeline(trace: JobTrace, id: string, theme: Theme) {
  const {timeline: time} = trace;
  if (time.rows.length === 0) return [];
  const place = (at: number) => (at / time.window_s) * 100;
  const rows = time.rows.map((row) => {
    const track = el('div', {class: 'track'}, ...row.spans.map((span) => {
      const kind = time.kinds[span.kind] ?? '';
      const node = mark(`bar${span.open ? ' open' : ''}${span.blocked ? ' blocked' : ''}`, place(span.begin), Math.max(0.15, place(span.end - span.begin)));
      const colour = kindColour(kind, theme);
      node.style.background = span.open ? `repeating-linear-gradient(-45deg, ${colour} 0 5px, transparent 5px 8px)` : colour;
      node.title = `${kind} ${span.seq}: ${time.operations[span.operation] ?? ''}, ${span.open ? 'since ' : ''}${format.seconds(span.end - span.begin)}`;
      return node;
    }));
    const name = `rank ${row.rank}`;
    return el('div', {class: row.named ? 'bar-row selected' : 'bar-row', role: 'listitem'}, el('span', {class: 'name', title: name}, name), track,
              el('span', {class: 'value'}, !row.traced ? 'no trace' : row.named ? 'named' : ''));
  });
  const unit = time.window_s >= 1 ? {size: 1, name: 's'} : time.window_s >= 1e-3 ? {size: 1e-3, name: 'ms'} : {size: 1e-6, name: 'µs'};
  const length = time.window_s / unit.size;
  const legend = time.kinds.map((kind) => {
    const box = el('i');
    box.style.background = kindColour(kind, theme);
    return el('span', {class: 'swatch'}, box, kind);
  });
  return [section(`${id}timeline`, trace.hang ? 'The blocked operation' : 'The latest operations',
                  `${time.operation}. By the clock of each rank's host; hatched is what has not ended.` +
                  (time.left_out > 0 ? ` ${counted(time.left_out, 'more member')} of the group not shown.` : ''),
                  el('p', {class: 'legend'}, ...legend),
                  el('div', {class: 'panel wide operations', role: 'list', 'aria-label': `Time line of ${time.operation}`}, ...rows,
                     axis(unit.name, format.ticks(length, 5).filter((at) => at <= length), length)))];
}

// Waits by rank and group, who waits for whom, and the operations in time; `id` begins the sections' ids.
export function traceSections(trace: JobTrace, id = '') {
  const theme = readTheme();
  return [section(`${id}waits`, 'Waits by rank and group',
                  (trace.hang ? 'How long each rank has been in what it is in. ' : 'Time in operations beyond what they take on the last member to come, as a share of the traced time. ') +
                  `In the order of ranks${trace.waits.ranks_per_cell > 1 ? `; a cell is the longest wait of ${trace.waits.ranks_per_cell} ranks` : ''}.`,
                  ...waits(trace, theme)),
          ...graph(trace, id, theme), ...timeline(trace, id, theme)];
}

export function colltracePage(host: HTMLElement, trace: JobTrace) {
  const lead = `${counted(trace.ranks, 'rank')}, ${format.count(trace.missing)} without a trace, ${counted(trace.operations, 'operation')}; ${format.count(trace.waiting)} ranks wait in one`;
  const columns = [text('Who'), text('Finding'), text('Operation'), text('Expected'), text('Found')];
  const rest = trace.verdicts.length - 12;
  host.append(pageHeader('colltrace', lead, trace.verdicts.length === 0 ? ['Nothing found.']
                : [...trace.verdicts.slice(0, 12).map(finding), ...(rest > 0 ? [`and ${format.count(rest)} more below`] : [])]),
              ...traceSections(trace),
              ...(trace.verdicts.length === 0 ? [] : [section('verdicts', 'What was called', '', table('Verdicts', columns, trace.verdicts.map((verdict) =>
                [who(verdict), verdict.finding, verdict.operation === '' ? format.none : `${verdict.operation} (${verdict.seq})`,
                 verdict.expected === '' ? format.none : verdict.expected, verdict.found === '' ? format.none : verdict.found])))]));
}
