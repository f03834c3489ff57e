// What the service's API gives, and how it is asked. Shapes: /openapi.json.

export interface Case {
  id: string;
  standing: string;
  cause: {kind: string; entity: string};
  confidence: number;
  opened: string;
  closed: string | null;
  records?: number;
  members: {record: string; relation: string}[];
  members_summarised?: {entity: string; kind: string; source: string; relation: string;
                        records: number; first: string; last: string}[];
  unexplained: string[];
  suppressed: number;
  silent: number;
  into?: string;
  split_from?: string;
  maintenance?: string;
}

export interface Repair {
  id: string;
  part: string;
  stage: string;
  since: string;
  reason: string;
  resolution: string;
  refused_by: string;
  retry_at: string | null;
  is_held: boolean;
  approved_by: string;
  rma?: {number: string; ordered: string; shipped: string | null; received: string | null} | null;
  ended: string | null;
  forecast: {jobs: number; stalled: number; slowdown_max: number; worst: string} | null;
  baseline: {sent: number; lost: number};
  verify: {sent: number; lost: number};
  cases: {id: string; kind: string; root: string; is_open: boolean; is_moved: boolean;
          confidence: number}[];
}

export interface Handling {
  id: string;
  owner: string;
  by: string;
  since: string;
  comments: number;
}

export interface Said {
  id: string;
  received: string;
  feed: string;
  line: string;
  record?: {t?: string; source?: string; kind?: string; entity?: string; value?: number;
            attrs?: Record<string, string>};
}

export interface Audit {
  seq: number;
  t: string;
  actor: string;
  action: string;
  detail: unknown;
}

export interface JobTrace {
  job: string;
  analysed: string | null;
  error?: string;
  ranks?: number;
  missing?: number;
  waiting?: number;
  hang?: boolean;
  verdicts?: {finding: string; meaning: string; ranks: number[]; hosts?: string[]; factor?: number;
              operation?: string; groups: {name: string; description: string}[]}[];
  network?: {judged: boolean; network: number; compute: number; load: number; nothing: number;
             suspects: {cause: string; probability: number; entity?: string; rank?: number; factor: number}[];
             edges: number; probe_rows: number};
}

export interface Fabric {
  roles: Record<string, number>;
  tiers: {rows: string; columns: string; row_names: string[]; column_names: string[];
          racks: string[]; cables: [number, number, number][]; left_out: number}[];
}

export interface Capacity {
  now: string;
  kill_switch: boolean;
  rack_share: number;
  plane_share: number;
  demand_share: number;
  out_max: number;
  out: string[];
  suspected: string[];
  frozen: {from: string; until: string; why: string; who: string}[];
  groups: {name: string; cables: number; live: number; share: number;
           share_without_suspects: number}[];
  groups_whole: number;
}

// What the log says of the network, now or at an instant.
export interface Network {
  at: string;
  out: {part: string; by: string; since: string | null}[];
  cases: {id: string; kind: string; entity: string; standing: string}[];
  links: {link: string; rate: number; loss: number}[];
  past: {log_from: string; read_from: string; events: number; not_known: string[];
         previous: string | null; next: string | null} | null;
}

export interface Count {
  sent: number;
  lost: number;
  p99_us: number;
}

export interface Probes {
  from: string;
  to: string;
  rows: number;
  rows_without_path: number;
  links_all: number;
  links_probed: number;
  racks: string[];
  pairs: (Count & {from: number; to: number})[];
  links: (Count & {link: string})[];
}

export interface Feeds {
  speakers: {device: string; source: string; lines: number; last: string}[];
  silent_switches: string[];
  unknown: {device: string; text: string; lines: number; last: string}[];
  unknown_left_out: number;
}

export interface Series {
  objective: string;
  scope: string;
  class: string;
  entity: string;
  minutes: {good: number; bad: number; no_data: number; all: number};
  coverage: number;
  availability: number | null;
  budget: {allowed_minutes: number; bad_minutes: number; left: number;
           burn_rates: {alert: string; rate: number | null}[]};
  causes: {episode: string | null; kind: string; planned: boolean; minutes: number}[];
}

// What the service says is wrong, in its words.
export class ApiError extends Error {}

const busyMs = 1000;
const triesMax = 60;

export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  let reply = await fetch(path, {cache: 'no-store', ...init});
  // Instants are read one at a time.
  for (let i = 0; reply.status === 503 && /[?&]at=/.test(path) && i < triesMax; ++i) {
    await new Promise((done) => { window.setTimeout(done, busyMs); });
    reply = await fetch(path, {cache: 'no-store', ...init});
  }
  if (reply.ok) return await reply.json() as T;
  const problem = await reply.json().catch(() => ({})) as {detail?: string};
  throw new ApiError(problem.detail ?? `the service answered ${reply.status}`);
}

export const send = (method: string, path: string, body: Record<string, string>) =>
  ask(path, {method, body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}});

// All pages of a list, given piece by piece as they come.
export async function pages<T>(path: string, take: (items: T[]) => void) {
  for (let before: string | null = ''; before !== null;) {
    const more: string = before === '' ? '' : `&before=${encodeURIComponent(before)}`;
    const page: {items: T[]; next: string | null} = await ask(path + more);
    take(page.items);
    before = page.next;
  }
}

export const part = (name: string) => encodeURIComponent(name);

// What taking the cause of a case out of service costs the running jobs.
export interface JobEffects {
  from: string | null;  // null: the service is not told which jobs run
  part: string;
  method: 'simulated' | 'bounded';
  unaffected: number;
  stale: boolean;
  jobs: {
    id: string;
    name: string;
    user: string;
    host_count: number;
    stalled: boolean;
    slowdown: number;
    hosts_at_part: string[];
    spares: {host: string; spare: string}[];
  }[];
}

export interface Jobs {
  from: string | null;  // null: the service is not told which jobs run
  read: string | null;
  stale: boolean;
  error: string | null;
  items: {
    id: string;
    name: string;
    user: string;
    since: string | null;
    host_count: number;
    racks: {rack: string; host_count: number; parts: string}[];
    unknown_nodes?: string;
  }[];
}
