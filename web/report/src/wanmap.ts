// Sites of a backbone where they lie, with a line for each direction of a cable, coloured by its use.
import {el, svg} from './dom';
import * as format from './format';
import {rampBar, rampColour, type Theme} from './theme';

export interface Site {
  name: string;
  lon: number | null;
  lat: number | null;
}
export interface Link {
  src: string;
  dst: string;
  rate_bps: number;
  load_bps: number;
}
type Point = [x: number, y: number];

const namesMax = 60;
const rim = 26;

// On a plane that keeps angles at the middle latitude. A site of unknown place lies between its neighbours; where none
// is known, all lie on a circle in the order of their names.
function placesOf(sites: Site[], links: Link[]): Map<string, Point> {
  const known = sites.filter(({lon, lat}) => lon !== null && lat !== null);
  if (known.length === 0) {
    const turn = (at: number) => (2 * Math.PI * at) / sites.length;
    return new Map(sites.map(({name}, at): [string, Point] => [name, [1.6 * Math.sin(turn(at)), -Math.cos(turn(at))]]));
  }
  const lats = known.map(({lat}) => lat ?? 0);
  const narrow = Math.cos((((Math.min(...lats) + Math.max(...lats)) / 2) * Math.PI) / 180);
  const out = new Map(known.map(({name, lon, lat}): [string, Point] => [name, [(lon ?? 0) * Math.max(narrow, 0.1), -(lat ?? 0)]]));
  const middle = (points: Point[]): Point => [points.reduce((sum, [x]) => sum + x, 0) / points.length,
                                              points.reduce((sum, [, y]) => sum + y, 0) / points.length];
  const all = middle([...out.values()]);
  for (const site of sites) {
    if (out.has(site.name)) continue;
    const near = links.filter(({src}) => src === site.name).map(({dst}) => out.get(dst)).filter((place) => place !== undefined);
    out.set(site.name, near.length === 0 ? all : middle(near));
  }
  return out;
}

function draw(sites: Site[], links: Link[], width: number, theme: Theme): SVGElement {
  const places = placesOf(sites, links);
  const xs = [...places.values()].map(([x]) => x), ys = [...places.values()].map(([, y]) => y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [wide, high] = [Math.max(...xs) - left || 1, Math.max(...ys) - top || 1];
  const scale = Math.min((width - 2 * rim) / wide, 560 / high);
  const height = high * scale + 2 * rim;
  const at = (name: string): Point => {
    const [x, y] = places.get(name) ?? [left, top];
    return [(width - wide * scale) / 2 + (x - left) * scale, rim + (y - top) * scale];
  };
  const root = svg('svg', {viewBox: `0 0 ${width} ${height.toFixed(0)}`, width, height: height.toFixed(0), role: 'img',
                           'aria-label': `Map of ${sites.length} sites and ${links.length} links by use`});
  const widest = Math.max(...links.map((link) => link.rate_bps), 1);
  for (const link of [...links].sort((a, b) => a.load_bps / a.rate_bps - b.load_bps / b.rate_bps)) {
    const [[x1, y1], [x2, y2]] = [at(link.src), at(link.dst)];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const stroke = 1.2 + 2.6 * Math.sqrt(link.rate_bps / widest);
    // Each direction keeps to the right, as traffic on a road.
    const [dx, dy] = [(-(y2 - y1) / length) * (stroke / 2 + 0.6), ((x2 - x1) / length) * (stroke / 2 + 0.6)];
    const use = link.load_bps / link.rate_bps;
    const line = {x1: (x1 + dx).toFixed(1), y1: (y1 + dy).toFixed(1), x2: (x2 + dx).toFixed(1), y2: (y2 + dy).toFixed(1)};
    root.append(svg('line', {...line, class: 'rim', 'stroke-width': (stroke + 0.8).toFixed(2)}),
                svg('line', {...line, class: use > 1 + 1e-6 ? 'wan-link over' : 'wan-link', stroke: rampColour(theme.ramp, use), 'stroke-width': stroke.toFixed(2)},
                    svg('title', {}, `${link.src} to ${link.dst}: ${format.rate(link.load_bps)} of ${format.rate(link.rate_bps)}, ${format.percent(use)}`)));
  }
  for (const {name} of sites) {
    const [x, y] = at(name);
    const node = svg('g', {class: 'node'}, svg('title', {}, name), svg('circle', {cx: x.toFixed(1), cy: y.toFixed(1), r: sites.length <= namesMax ? 4.5 : 2.5}));
    if (sites.length <= namesMax && width > 560) {
      const end = x > width - 110;
      node.append(svg('text', {x: (end ? x - 8 : x + 8).toFixed(1), y: (y - 7).toFixed(1), 'text-anchor': end ? 'end' : 'start'}, name));
    }
    root.append(node);
  }
  return root;
}

// Appends to `host`; the result ends it.
export function wanMap(host: HTMLElement, sites: Site[], links: Link[], theme: Theme): () => void {
  const frame = el('div', {class: 'fabric-map wan-map'});
  const placed = sites.some(({lon}) => lon !== null);
  const key = el('p', {class: 'legend'}, el('span', {}, 'Use of a link: 0', rampBar(theme), '100 %'), el('span', {class: 'key fault'}, 'above capacity'),
                 placed ? '' : 'The topology states no places: --sites adds them.');
  host.append(frame, key);
  let width = 0;
  const show = () => {
    if (frame.clientWidth === width || frame.clientWidth === 0) return;
    width = frame.clientWidth;
    frame.replaceChildren(draw(sites, links, width, theme));
  };
  const observer = new ResizeObserver(show);
  observer.observe(frame);
  show();
  return () => {
    observer.disconnect();
    frame.remove();
    key.remove();
  };
}
