// Colours that canvases need, taken from the style sheet so that there is one palette.
import {el} from './dom';

export interface Theme {
  text: string;
  muted: string;
  line: string;
  selected: string;
  selectedFill: string;
  first: string;
  other: string;
  ramp: Rgb[];
  page: string;
  compute: string[];  // shades for different sorts of it
  parts: Record<string, string>;  // by dimension of parallelism
}

// Dimensions of parallelism in the order of report.json.
export const dimensions = ['tp', 'cp', 'pp', 'dp', 'ep', 'other'];

type Rgb = [number, number, number];

function parse(hex: string): Rgb {
  const value = Number.parseInt(hex.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: get('text'),
    muted: get('muted'),
    line: get('line'),
    selected: get('selected'),
    selectedFill: get('selected-fill'),
    first: get('first'),
    other: get('other'),
    ramp: get('ramp').split(/\s+/).map(parse),
    page: get('page'),
    compute: ['compute', 'compute-2', 'compute-3'].map(get),
    parts: Object.fromEntries(dimensions.map((name) => [name, get(`part-${name}`)])),
  };
}

// The ramp at `share` in [0, 1]. Its lightness is monotone, so it reads without hue as well.
export function rampColour(ramp: Rgb[], share: number): string {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(at), ramp.length - 2);
  const [a, b] = [ramp[low], ramp[low + 1]];
  if (a === undefined || b === undefined) return 'none';
  const mix = (from: number, to: number) => Math.round(from + (to - from) * (at - low));
  return `rgb(${mix(a[0], b[0])} ${mix(a[1], b[1])} ${mix(a[2], b[2])})`;
}

// The ramp from 0 to 1, for legends.
export function rampBar(theme: Theme): HTMLElement {
  const bar = el('span', {class: 'ramp', 'aria-hidden': 'true'});
  bar.style.background = `linear-gradient(to right, ${theme.ramp.map((_, at) => rampColour(theme.ramp, at / (theme.ramp.length - 1))).join(', ')})`;
  return bar;
}
