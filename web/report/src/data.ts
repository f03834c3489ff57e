// The shape of report.json (docs/report.md) as it is embedded in the page.

export interface Job {
  op: string;
  algorithm: string;
  placement: string;
  gpus: number;
  bytes_per_rank: number;
  iterations: number;
  time_s: {mean: number | null; min: number | null; max: number | null};
  algbw_GBps: number | null;
  busbw_GBps: number | null;
  roofline_s: number | null;
  roofline_busbw_GBps: number | null;
  ratio: number | null;
}

export interface Tier {
  links: number;
  mean_load: number;
  max_load: number;
  mmr: number | null;
  histogram: number[];
}

export interface HeatMap {
  row_role: string;
  column_role: string;
  rows: string[];
  columns: string[];
  rows_per_cell: number;
  columns_per_cell: number;
  up: (number | null)[][];
  down: (number | null)[][];
}

export interface Completion {
  finished: number;
  unfinished: number;
  mean_s: number | null;
  quantiles: [share: number, seconds: number][];
}

export interface Note {
  severity: 'info' | 'warning';
  text: string;
}

export interface Variant {
  scheme: string;
  qps: number;
  faults: string[];
  job_order: string[];
  jobs: Record<string, Job>;
  tier_order: string[];
  tiers: Record<string, Tier>;
  heat_maps: HeatMap[];
  flow_completion: Completion;
  notes: Note[];
  digest: string;
  scenario_digest: string;
  scenario_text: string;
}

export interface Report {
  scenario: {name: string; file: string; seed: number};
  weft_version: string;
  engine: string;
  command: string;
  fabric: {text: string; roles: Record<string, number>; oversubscription: string[]};
  variant_order: string[];
  variants: Record<string, Variant>;
}

export interface Named<T> {
  name: string;
  value: T;
}

// Objects lose the order of keys that look like numbers, so the report carries lists of names.
function ordered<T>(order: string[], values: Record<string, T>): Named<T>[] {
  return order.map((name) => ({name, value: values[name] as T}));
}

export const variantsOf = (report: Report) => ordered(report.variant_order, report.variants);
export const jobsOf = (variant: Variant) => ordered(variant.job_order, variant.jobs);
export const tiersOf = (variant: Variant) => ordered(variant.tier_order, variant.tiers);

// Names of all variants' jobs, in order of first appearance.
export function jobNames(report: Report): string[] {
  return [...new Set(variantsOf(report).flatMap((variant) => variant.value.job_order))];
}

export function jobOf(variant: Variant, name: string): Job | undefined {
  return Object.hasOwn(variant.jobs, name) ? variant.jobs[name] : undefined;
}

export function tierOf(variant: Variant, name: string): Tier | undefined {
  return Object.hasOwn(variant.tiers, name) ? variant.tiers[name] : undefined;
}
