// A placement: hosts in the order of their ranks, and the fabric's hosts coloured by who has them.
import {el, number, pageHeader, section, swatch, table, text} from './dom';
import * as format from './format';

interface Host {
  name: string;
  zone: number;
  rack: number;
  owner: number | null;  // of `owners`
}
export interface Placement {
  hosts: Host[];
  zones: string[];
  owners: string[];  // the job is the last
  order: number[];   // hosts of the job by rank
  gpus_per_host: number;
  why: string[];
  bytes: {zone_bytes: number; zone_bytes_bound: number; rack_bytes: number; best_plain: string; best_plain_bytes: number} | null;
}

// Hues a third of the way round apart, so that neighbours differ.
const hue = (at: number) => `hsl(${(at * 137.5 + 210) % 360} 55% 55%)`;

function square(title: string, colour: string | undefined, gap: boolean) {
  const node = el('i', {title, class: gap ? 'gap' : ''});
  if (colour !== undefined) node.style.background = colour;
  return node;
}

function legend(names: string[], colours: (string | undefined)[], counts: number[]) {
  return el('p', {class: 'legend'}, ...names.map((name, at) => swatch(`${name}: ${format.count(counts[at] ?? 0)}`, colours[at])));
}

// Coloured by zone; a gap where the rack changes.
function rankMap(placement: Placement) {
  const hosts = placement.order.flatMap((at) => placement.hosts[at] ?? []);
  const used = [...new Set(hosts.map((host) => host.zone))];
  const each = placement.gpus_per_host;
  const squares = hosts.map((host, at) => square(
    `ranks ${at * each}-${(at + 1) * each - 1}: ${host.name}, ${placement.zones[host.zone] ?? ''}`, hue(used.indexOf(host.zone)),
    at > 0 && hosts[at - 1]?.rack !== host.rack));
  return [el('div', {class: 'squares', role: 'img', 'aria-label': `${hosts.length} hosts in the order of their ranks`}, ...squares),
          legend(used.map((zone) => placement.zones[zone] ?? ''), used.map((_, at) => hue(at)),
                 used.map((zone) => hosts.filter((host) => host.zone === zone).length))];
}

function fabricMap(placement: Placement) {
  const colours = placement.owners.map((_, at) => (at === placement.owners.length - 1 ? 'var(--selected)' : hue(at + 3)));
  const zones = placement.zones.map((name, zone) => {
    const hosts = placement.hosts.filter((host) => host.zone === zone);
    const squares = hosts.map((host, at) => square(
      `${host.name}: ${host.owner === null ? 'free' : placement.owners[host.owner] ?? ''}`,
      host.owner === null ? undefined : colours[host.owner], at > 0 && hosts[at - 1]?.rack !== host.rack));
    return el('div', {class: 'zone'}, el('span', {class: 'name'}, name), el('div', {class: 'squares'}, ...squares));
  });
  const owned = (at: number | null) => placement.hosts.filter((host) => host.owner === at).length;
  return [el('div', {role: 'img', 'aria-label': `${placement.hosts.length} hosts of the fabric by owner`}, ...zones),
          legend([...placement.owners, 'free'], [...colours, 'var(--line)'], [...placement.owners.map((_, at) => owned(at)), owned(null)])];
}

export function placePage(host: HTMLElement, placement: Placement) {
  const {bytes} = placement;
  const gib = (value: number) => format.bytes(value);
  const facts = bytes === null ? [] : [
    `${gib(bytes.zone_bytes)} of a step cross zones; no order has less than ${gib(bytes.zone_bytes_bound)}, the best plain order (${bytes.best_plain}) ${gib(bytes.best_plain_bytes)}.`,
    `${gib(bytes.rack_bytes)} of a step cross racks.`];
  const counts = new Map<number, number>();
  for (const at of placement.order) {
    const zone = placement.hosts[at]?.zone ?? 0;
    counts.set(zone, (counts.get(zone) ?? 0) + 1);
  }
  host.append(pageHeader('place', `${format.count(placement.order.length)} hosts, ${format.count(placement.order.length * placement.gpus_per_host)} ranks`, facts),
              section('ranks', 'Hosts in rank order', 'Coloured by zone; a gap where the rack changes.', el('div', {class: 'panel wide'}, ...rankMap(placement))),
              section('fabric', 'The fabric', 'Every host, coloured by who has it.', el('div', {class: 'panel wide'}, ...fabricMap(placement))),
              section('zones', 'Why', '', el('ul', {}, ...placement.why.map((line) => el('li', {}, line))),
                      table('Zones', [text('Zone'), number('Hosts')], [...counts].map(([zone, hosts]) => [placement.zones[zone] ?? '', format.count(hosts)]))));
}
