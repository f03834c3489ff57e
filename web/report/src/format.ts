// Numbers as people in the field write them. `null` (no value) is a dash.
import type {Unfinished} from './data';

export const none = '–';

const timeUnits: [number, string][] =
  [[3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];
const byteUnits: [number, string][] =
  [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

const decimalUnits: [number, string][] = [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
const rateUnits: [number, string][] = [[1e12, 'Tbps'], [1e9, 'Gbps'], [1e6, 'Mbps'], [1e3, 'kbps'], [1, 'bps']];

function digits(value: number, significant: number): string {
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(significant));  // 0.99999 has as many digits as 1
  const whole = Math.floor(Math.log10(Math.abs(rounded))) + 1;
  return whole > 5 ? count(Math.round(value)) : value.toFixed(Math.max(0, significant - whole));
}

function inUnit(value: number, units: [number, string][], significant: number): string {
  const [scale, name] =
    units.find(([size]) => Math.abs(value) >= size) ?? units[units.length - 1] ?? [1, ''];
  return `${digits(value / scale, significant)} ${name}`;
}

export const seconds = (value: number | null) =>
  value === null ? none : value === 0 ? '0 s' : inUnit(value, timeUnits, 4);

// Without zeros behind the point: of lengths that somebody chose.
const trimmed = (text: string) => text.replace(/(\.\d*?)0+(?= |$)/, '$1').replace(/\.(?= |$)/, '');
export const span = (value: number) => trimmed(seconds(value));
export const plain = (value: number) => trimmed(number(value));
export const decimalBytes = (value: number) => trimmed(inUnit(value, decimalUnits, 4));

export function bytes(value: number | null): string {
  if (value === null) return none;
  const text = inUnit(value, byteUnits, 4);
  return text.replace(/\.0+ /, ' ');
}

export const rate = (bps: number | null) =>
  bps === null ? none : bps === 0 ? '0' : trimmed(inUnit(bps, rateUnits, 4));

export const number = (value: number | null, significant = 4) =>
  value === null ? none : digits(value, significant);
export const unfinished = ({at_s, why}: Unfinished) => `unfinished at ${seconds(at_s)}: ${why}`;
export const ratio = (value: number | null) => (value === null ? none : value.toFixed(2));
export const percent = (value: number | null) =>
  value === null ? none : `${(value * 100).toFixed(1)} %`;

// Thousands are set apart by commas in every locale: the page is the same for every reader.
export const count = (value: number) => value.toString().replace(/\B(?=(\d{3})+$)/g, ',');

// "rtsw->ctsw" as it reads best.
export const tierName = (name: string) => name.replaceAll('->', ' → ');

// About `wanted` round steps (1, 2 or 5 times a power of ten) from 0 to at least `max`.
export function ticks(max: number, wanted: number): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) ?? rough;
  const last = Math.ceil(max / step - 1e-9);
  return Array.from({length: last + 1}, (_, at) => Number((at * step).toPrecision(12)));
}
