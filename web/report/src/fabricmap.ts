// The fabric as layers of switches over hosts; bundles of cables coloured by load, faults marked.
import {el, number, table, text, svg} from './dom';
import * as format from './format';
import {rampBar, rampColour, type Theme} from './theme';

interface Group {
  label: string;
  name: string;
  nodes: number;
  down: number;
  draining: number;
}
interface Layer {
  role: string;
  folded: string;  // "by rack"; "" for single nodes
  nodes: number;
  groups: Group[];
}
// Groups of all layers are numbered together; loads are shares of the capacity from from_s to to_s, and over the run.
type Edge = [upper: number, lower: number, cables: number, down: number, degraded: number, bps: number,
             loadMax: number, loadMean: number, runMax: number];
export interface FabricMap {
  layers: Layer[];
  edges: Edge[];
  inside: number;  // cables within a group
  from_s: number;
  to_s: number;  // 0: the loads are those of the whole run
}
export type FabricMaps = Record<string, FabricMap>;

const gap = 84, boxHigh = 22, letter = 6.4;

function bundle(map: FabricMap, edge: Edge): string {
  const groups = map.layers.flatMap((layer) => layer.groups);
  const [upper, lower, cables, down, degraded, , most, mean, run] = edge;
  return `${groups[upper]?.name ?? ''} to ${groups[lower]?.name ?? ''}: ${format.count(cables)} ` +
         `${cables === 1 ? 'cable' : 'cables'}, load ${format.percent(most)} at most, ${format.percent(mean)} in the mean` +
         (map.to_s > 0 ? `, ${format.percent(run)} over the run` : '') +
         (down > 0 ? `, ${down} down` : '') + (degraded > 0 ? `, ${degraded} degraded` : '');
}

function about(group: Group, layer: Layer): string {
  return (group.nodes > 1 ? `${group.name}: ${format.count(group.nodes)} ${layer.role}` : group.name) +
         (group.down > 0 ? `, ${group.down} down` : '') + (group.draining > 0 ? `, ${group.draining} draining` : '');
}

function draw(map: FabricMap, width: number, top: number, theme: Theme): SVGElement {
  // On a narrow page the names of layers stand above them.
  const left = width < 560 ? 0 : 96;
  const titled = left === 0 ? 18 : 0;
  const slots = map.layers.map((layer) => (width - left) / layer.groups.length);
  const turned = map.layers.map((layer, at) =>
    Math.max(...layer.groups.map((group) => group.label.length)) * letter + 4 > (slots[at] ?? 0) - 3);
  const high = map.layers.map((layer, at) => (!turned[at] ? boxHigh
    : Math.max(boxHigh, Math.max(...layer.groups.map((group) => group.label.length)) * letter + 8)));
  const places: {x: number; y: number; high: number; layer: number}[] = [];
  let y = titled + 2;
  map.layers.forEach((layer, at) => {
    layer.groups.forEach((_, g) => places.push({x: left + (slots[at] ?? 0) * (g + 0.5), y, high: high[at] ?? 0, layer: at}));
    y += (high[at] ?? 0) + gap + titled;
  });
  const root = svg('svg', {viewBox: `0 0 ${width} ${y - gap - titled + 4}`, width, height: y - gap - titled + 4, role: 'img',
                           'aria-label': `The fabric: ${map.layers.map((layer) => `${layer.nodes} ${layer.role}`).join(', ')}`});
  const widest = Math.max(...map.edges.map((edge) => edge[5]), 1);
  const bad = (edge: Edge) => edge[3] + edge[4] > 0;
  const order = [...map.edges].sort((a, b) => Number(bad(a)) - Number(bad(b)) || a[6] - b[6]);
  for (const edge of order) {
    const from = places[edge[0]], to = places[edge[1]];
    if (from === undefined || to === undefined) continue;
    const y1 = from.y + from.high;
    const path = from.layer === to.layer
      ? `M${from.x} ${y1}Q${(from.x + to.x) / 2} ${y1 + 24} ${to.x} ${y1}` : `M${from.x} ${y1}L${to.x} ${to.y - titled}`;
    root.append(svg('path', {d: path, class: `cables ${edge[3] > 0 ? 'down' : bad(edge) ? 'weak' : edge[6] > 0 ? '' : 'idle'}`,
                             stroke: rampColour(theme.ramp, top > 0 ? edge[6] / top : 0),
                             'stroke-width': (0.8 + 2.2 * Math.sqrt(edge[5] / widest)).toFixed(2)},
                    svg('title', {}, bundle(map, edge))));
  }
  let at = 0;
  map.layers.forEach((layer, l) => {
    const first = places[at];
    if (first === undefined) return;
    const said = `${format.count(layer.nodes)}${layer.folded === '' ? '' : `, ${layer.folded}`}`;
    if (left > 0) {
      root.append(svg('text', {x: 0, y: first.y + 10}, layer.role), svg('text', {x: 0, y: first.y + 24, class: 'soft'}, said));
    } else {
      root.append(svg('text', {x: 0, y: first.y - 5}, `${layer.role}: ${said}`));
    }
    const wide = Math.max(2, Math.min(84, (slots[l] ?? 0) - 3));
    for (const group of layer.groups) {
      const place = places[at++];
      if (place === undefined) continue;
      const middle = place.y + place.high / 2;
      const name = svg('text', {x: place.x, y: middle, 'text-anchor': 'middle', 'dominant-baseline': 'central'}, group.label);
      if (turned[l]) name.setAttribute('transform', `rotate(-90 ${place.x} ${middle})`);
      root.append(svg('g', {class: `node ${group.down > 0 ? 'down' : group.draining > 0 ? 'weak' : ''}`},
                      svg('title', {}, about(group, layer)),
                      svg('rect', {x: place.x - wide / 2, y: place.y, width: wide, height: place.high, rx: 3}),
                      ...((slots[l] ?? 0) < 10 ? [] : [name])));
    }
  });
  return root;
}

// Appends to `host`; the result ends it. `top` is the load at the end of the ramp, for all variants.
export function fabricMap(host: HTMLElement, map: FabricMap, top: number, theme: Theme): () => void {
  const frame = el('div', {class: 'fabric-map'});
  const hot = [...map.edges].sort((a, b) => b[6] - a[6] || b[7] - a[7]).slice(0, 5).filter((edge) => edge[6] > 0);
  const groups = map.layers.flatMap((layer) => layer.groups);
  const rows = hot.map((edge) => [groups[edge[0]]?.name ?? '', groups[edge[1]]?.name ?? '', format.count(edge[2]),
                                  format.percent(edge[6]), format.percent(edge[7]),
                                  ...(map.to_s > 0 ? [format.percent(edge[8])] : [])]);
  const when = map.to_s > 0 ? `in the busiest interval, ${format.seconds(map.from_s)} to ${format.seconds(map.to_s)}`
    : 'over the whole run';
  const hidden = map.inside === 0 ? '' : ` ${format.count(map.inside)} cables within a box are not drawn.`;
  host.append(frame, el('p', {class: 'legend'}, el('span', {}, `Load of the fullest link ${when}: 0`, rampBar(theme), format.percent(top)),
                        el('span', {class: 'key fault'}, 'with a link down'),
                        el('span', {class: 'key weak'}, 'degraded or draining'), hidden),
              ...(rows.length === 0 ? [] : [table('The hottest bundles of cables', [text('from'), text('to'), number('cables'),
                number('most'), number('mean'), ...(map.to_s > 0 ? [number('most over the run')] : [])], rows)]));
  let width = 0;
  const show = () => {
    if (frame.clientWidth === width || frame.clientWidth === 0) return;
    width = frame.clientWidth;
    frame.replaceChildren(draw(map, width, top, theme));
  };
  const observer = new ResizeObserver(show);
  observer.observe(frame);
  show();
  return () => observer.disconnect();
}

export const mapTop = (maps: FabricMaps) =>
  Math.max(0, ...Object.values(maps).flatMap((map) => map.edges.map((edge) => edge[6])));
