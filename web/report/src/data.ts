// The shape of report.json (docs/report.md) as it is embedded in the page.

// Since when and why a job stalled that did not come to its end; its times are null.
export interface Unfinished {
  at_s: number | null;
  why: string;
}

export interface Job {
  op: string;
  algorithm: string;
  placement: string;
  gpus: number;
  bytes_per_rank: number | null;
  iterations: number;
  unfinished: Unfinished | null;
  time_s: {mean: number | null; min: number | null; max: number | null};
  algbw_GBps: number | null;
  busbw_GBps: number | null;
  roofline_s: number | null;
  roofline_busbw_GBps: number | null;
  ratio: number | null;
}

type Value = number | null;

export interface HotLink {
  link: string;
  load: Value;
  bytes: Value;
  flows: {job: string; dimension: string; from: string; to: string; bytes: Value}[];
}

export const distances = ['host', 'rack', 'zone', 'cross_zone'] as const;
export type Distances = Record<(typeof distances)[number], Value>;

// A job with a model or a recorded workload.
export interface TrainingJob extends Job {
  model: string;
  plan: string;
  step_time_s: Value;
  compute_s: Value;
  exposed_s: Record<string, Value>;  // by dimension
  idle_s: Value;
  bubble: Value;
  critical_path: {compute_s: Value; communication_s: Record<string, Distances>};
  tokens_per_s_per_gpu: Value;
  tflops_per_gpu: Value;
  mfu: Value;
  memory_bytes: Value;
  roofline_resource: string;
  bytes: Record<string, Distances>;
  hottest_links: HotLink[];
  waits: {rank: string; dimension: string; seconds: Value}[];
  stragglers: {rank: string; factor: Value}[];
  step_times_s: Value[];
  start_s: Value;
  bootstrap_s: Value;
  ingest_s: Value;
  ingest_stall_s: Value;
  checkpoint_s: Value;
  checkpoints: number;
  checkpoint_stall_s: Value;
}

// The last step of a training job; see timeline.hpp.
export interface Timeline {
  job: string;
  start_s: number;
  duration_s: number;
  lanes_left_out: number;
  merged_s: number;
  lanes: string[];
  categories: string[];
  names: string[];
  spans: number[];
}

export type Timelines = Record<string, Timeline[]>;

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

// What queues of one tier did, where packets were simulated.
export interface PacketTier {
  packets: number;
  drops: number;
  ecn_marks: number;
  pauses: number;
  queue_bytes: {p50: Value; p99: Value; max: Value; histogram: number[]};
  pause_s: {p50: Value; p99: Value; histogram_s: [number, number][]};
  paused_max_s: Value;
  paused_total_s: Value;
}

export interface Packets {
  transport: string;
  hops: number;
  pause_frames: number;
  ecn_marks: number;
  cnps: number;
  drops: number;
  drops_headroom: number;
  drops_link: number;
  drops_control: number;
  trims: number;
  retransmissions: number;
  timeouts: number;
  buffer_max_bytes: Value;
  payload_bytes: {sent: number; received: number; dropped: number; in_flight: number};
  series?: {name: string; unit: string; time_s: number[]; value: Value[]}[];
  deadlocks: string[];
  storms: string[];
  lossless_drops: string[];
  tier_order: string[];
  tiers: Record<string, PacketTier>;
}

export interface Fabric {
  text: string;
  roles: Record<string, number>;
  oversubscription: string[];
}

// Links that died within the run, until routing led round them.
export interface LinkFailure {
  at_s: number;
  what: string;
  flows_hit: number;
  flows_stranded: number;
  path_again_s: {median: number | null; max: number | null};
  stalled_bytes: number | null;
  lost_bytes: number | null;
  lost_packets: number | null;
}

export interface Variant {
  fabric: Fabric;
  scheme: string;
  qps: number;
  faults: string[];
  job_order: string[];
  jobs: Record<string, Job | TrainingJob>;
  tier_order: string[];
  tiers: Record<string, Tier>;
  heat_maps: HeatMap[];
  flow_completion: Completion;
  failures: LinkFailure[];
  notes: Note[];
  digest: string;
  scenario_digest: string;
  scenario_text: string;
  packet?: Packets;
  estimate?: {share: number; spread: number};  // where times and loads are extrapolated
}

export interface Report {
  format: string;
  format_version: number;
  scenario: {name: string; file: string; seed: number};
  weft_version: string;
  engine: string;
  command: string;
  findings: string[];
  fabric: Fabric | null;  // of the first variant
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
// Each fabric once, with the variants that have it.
export function fabricsOf(report: Report) {
  const seen = new Map<string, {variants: string[]; fabric: Fabric}>();
  for (const {name, value} of variantsOf(report)) {
    const key = JSON.stringify(value.fabric);
    const known = seen.get(key) ?? {variants: [], fabric: value.fabric};
    known.variants.push(name);
    seen.set(key, known);
  }
  return [...seen.values()];
}

export const jobsOf = (variant: Variant) => ordered(variant.job_order, variant.jobs);
export const tiersOf = (variant: Variant) => ordered(variant.tier_order, variant.tiers);

export const packetTiersOf = (packets: Packets) => ordered(packets.tier_order, packets.tiers);

// Variants on the packet engine.
export const packetsOf = (report: Report): Named<Packets>[] =>
  variantsOf(report).flatMap(({name, value}) =>
    value.packet === undefined ? [] : [{name, value: value.packet}]);

export const isTraining = (job: Job): job is TrainingJob => 'step_time_s' in job;

// Names of all variants' jobs of one kind, in order of first appearance.
function namesWhere(report: Report, wanted: (job: Job) => boolean): string[] {
  return [...new Set(variantsOf(report).flatMap((variant) =>
    jobsOf(variant.value).filter((job) => wanted(job.value)).map((job) => job.name)))];
}

export const collectiveNames = (report: Report) => namesWhere(report, (job) => !isTraining(job));
export const trainingNames = (report: Report) => namesWhere(report, isTraining);

function jobOf(variant: Variant, name: string): Job | undefined {
  return Object.hasOwn(variant.jobs, name) ? variant.jobs[name] : undefined;
}

export function collectiveOf(variant: Variant, name: string): Job | undefined {
  const job = jobOf(variant, name);
  return job !== undefined && isTraining(job) ? undefined : job;
}

export function trainingOf(variant: Variant, name: string): TrainingJob | undefined {
  const job = jobOf(variant, name);
  return job !== undefined && isTraining(job) ? job : undefined;
}

export const timelinesOf = (timelines: Timelines, variant: string): Timeline[] =>
  Object.hasOwn(timelines, variant) ? timelines[variant] ?? [] : [];

export function tierOf(variant: Variant, name: string): Tier | undefined {
  return Object.hasOwn(variant.tiers, name) ? variant.tiers[name] : undefined;
}
