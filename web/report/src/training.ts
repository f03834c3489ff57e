// Training steps: for each job, its variants side by side as numbers and as stacked bars.
import {axis, mark} from './bandwidth';
import {trainingNames, trainingOf, variantsOf, type Named, type Report, type TrainingJob,
        type Variant} from './data';
import {el, number, section, text, type Column} from './dom';
import * as format from './format';
import {settings} from './overview';
import {dimensions} from './theme';

type Row = Named<TrainingJob | undefined>;

interface Part {
  kind: string;  // "compute", a dimension or "idle"
  seconds: number;
}

// What the page calls a part, wherever it stands.
const partName = (kind: string) =>
  kind === 'compute' || kind === 'idle' ? kind
    : `exposed ${kind === 'other' ? 'communication' : kind.toUpperCase()}`;

function exposedParts(job: TrainingJob): Part[] {
  return dimensions.map((kind) => ({kind, seconds: job.exposed_s[kind] ?? 0}))
    .filter((part) => part.seconds > 0);
}

const exposedTotal = (job: TrainingJob) =>
  exposedParts(job).reduce((sum, part) => sum + part.seconds, 0);

const stepParts = (job: TrainingJob): Part[] => [
  {kind: 'compute', seconds: job.compute_s ?? 0}, ...exposedParts(job),
  {kind: 'idle', seconds: job.idle_s ?? 0}].filter((part) => part.seconds > 0);

function key(kind: string) {
  return el('span', {class: `key part-${kind}`}, partName(kind));
}

// A bar of parts end to end; `scale` is per cent of the track per second.
function stack(job: TrainingJob, parts: Part[], scale: number) {
  let from = 0;
  return parts.map((part) => {
    const bar = mark(`bar part-${part.kind}`, from * scale, part.seconds * scale);
    const share = job.step_time_s === null ? '' :
      `, ${format.percent(part.seconds / job.step_time_s)} of the step`;
    bar.title = `${partName(part.kind)}: ${format.seconds(part.seconds)}${share}`;
    from += part.seconds;
    return bar;
  });
}

function barRow(row: Row, track: (job: TrainingJob) => Node[],
                value: (job: TrainingJob) => string) {
  const job = row.value;
  const stopped = job?.unfinished ?? null;
  const done = job !== undefined && stopped === null && job.step_time_s !== null;
  return el('div', {class: 'bar-row', role: 'listitem', 'data-variant': row.name},
            el('span', {class: 'name', title: row.name}, row.name),
            el('div', {class: 'track'}, ...(done ? track(job) : [])),
            el('span', stopped === null ? {class: 'value'}
              : {class: 'value', title: format.unfinished(stopped)},
               job === undefined ? 'not run' : done ? value(job)
                 : stopped === null ? format.none : 'unfinished'));
}

interface Bars {
  title: string;
  note: string;
  unit: string;
  of: (job: TrainingJob) => number;  // length of the bar in units of the axis
  track: (job: TrainingJob, scale: number) => Node[];
  value: (job: TrainingJob) => string;
  wide?: boolean;
}

// The unit in which an axis up to `seconds` reads well.
function unitOf(seconds: number) {
  if (seconds >= 1) return {size: 1, name: 's'};
  return seconds >= 1e-3 ? {size: 1e-3, name: 'ms'} : {size: 1e-6, name: 'µs'};
}

const longest = (rows: Row[], of: (job: TrainingJob) => number) =>
  Math.max(0, ...rows.map((row) => (row.value ? of(row.value) : 0)));

function bars(rows: Row[], spec: Bars) {
  const top = longest(rows, spec.of);
  const marks = format.ticks(top, 5);
  const max = marks[marks.length - 1] ?? 1;
  return el('figure', {class: `panel stacked${spec.wide === true ? ' wide' : ''}`},
            el('figcaption', {}, el('strong', {}, spec.title), el('small', {}, spec.note)),
            el('div', {class: 'bars', role: 'list', 'aria-label': spec.title},
               ...rows.map((row) => barRow(row, (job) => spec.track(job, 100 / max), spec.value))),
            axis(spec.unit, marks, max));
}

function breakdown(rows: Row[]) {
  const reach = (job: TrainingJob) => Math.max(job.step_time_s ?? 0, job.roofline_s ?? 0);
  const unit = unitOf(longest(rows, reach));
  return bars(rows, {
    title: 'Where the time of a step goes',
    note: 'Mean over GPUs. The line is the roofline: the busiest resource alone.',
    unit: `Step time (${unit.name})`,
    of: (job) => reach(job) / unit.size,
    wide: true,
    track: (job, scale) => [
      ...stack(job, stepParts(job), scale / unit.size),
      ...(job.roofline_s === null ? []
        : [mark('roofline', (job.roofline_s / unit.size) * scale)])],
    value: (job) => format.seconds(job.step_time_s),
  });
}

function exposed(rows: Row[]) {
  const unit = unitOf(longest(rows, exposedTotal));
  return bars(rows, {
    title: 'Exposed communication',
    note: 'The part that no compute hides.',
    unit: `Exposed time of a step (${unit.name})`,
    of: (job) => exposedTotal(job) / unit.size,
    track: (job, scale) => stack(job, exposedParts(job), scale / unit.size),
    value: (job) => format.seconds(exposedTotal(job)),
  });
}

function utilisation(rows: Row[]) {
  return bars(rows, {
    title: 'Model FLOPs utilisation',
    note: 'Of the dense peak of the GPU in the precision of the plan.',
    unit: 'MFU (%)',
    of: (job) => (job.mfu ?? 0) * 100,
    track: (job, scale) => [mark('bar', 0, (job.mfu ?? 0) * 100 * scale)],
    value: (job) => format.percent(job.mfu),
  });
}

const columns: Column[] =
  [text('Variant'), number('Step time'), number('Speed vs first'), number('TFLOP/s per GPU'),
   number('MFU'), number('Bubble'), number('Exposed'), number('Tokens/s per GPU'),
   number('× roofline')];

function cells(job: TrainingJob | undefined, first: TrainingJob | undefined): string[] {
  if (job === undefined) return ['not run', ...columns.slice(2).map(() => format.none)];
  const step = job.step_time_s;
  if (step === null) return columns.slice(1).map(() => format.none);
  const over = (value: number | null | undefined) =>
    format.ratio(value == null ? null : value / step);
  const slowdown = job.roofline_s === null ? null : step / job.roofline_s;
  return [format.seconds(step), over(first?.step_time_s), format.number(job.tflops_per_gpu),
          format.percent(job.mfu), format.percent(job.bubble),
          format.percent(exposedTotal(job) / step), format.number(job.tokens_per_s_per_gpu),
          format.ratio(slowdown)];
}

function summary(rows: Row[], variants: Named<Variant>[], select: (name: string) => void) {
  const first = rows[0]?.value;
  const body = rows.map((row, at) => {
    const button = el('button', {type: 'button', class: 'link'}, row.name);
    button.addEventListener('click', () => select(row.name));
    const variant = variants[at]?.value;
    return el('tr', {'data-variant': row.name},
              el('th', {scope: 'row', class: 'text'}, button,
                 variant === undefined ? undefined : el('small', {}, settings(variant))),
              ...(row.value != null && row.value.unfinished !== null
                ? [el('td', {class: 'unfinished', colspan: String(columns.length - 1)},
                      format.unfinished(row.value.unfinished))]
                : cells(row.value, first).map((cell) => el('td', {class: 'number'}, cell))));
  });
  const head = columns.map((column, at) =>
    el('th', {scope: 'col', class: at === 0 ? 'text' : 'number'}, column.title));
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Training steps'},
            el('table', {class: 'overview steps'}, el('thead', {}, el('tr', {}, ...head)),
               el('tbody', {}, ...body)));
}

const distinct = (values: string[]) => [...new Set(values)].filter((v) => v !== '').join(' / ');

function block(report: Report, name: string, select: (name: string) => void) {
  const variants = variantsOf(report);
  const rows: Row[] = variants.map((v) => ({name: v.name, value: trainingOf(v.value, name)}));
  const jobs = rows.flatMap((row) => row.value ?? []);
  const facts = [distinct(jobs.map((job) => job.model)), distinct(jobs.map((job) => job.plan)),
                 `${distinct(jobs.map((job) => format.count(job.gpus)))} GPUs`,
                 distinct(jobs.map((job) => job.placement))].filter((fact) => fact !== '');
  const kinds = new Set(jobs.flatMap((job) => stepParts(job).map((part) => part.kind)));
  const legend = ['compute', ...dimensions, 'idle'].filter((kind) => kinds.has(kind)).map(key);
  const panels = [jobs.some((job) => job.mfu !== null) ? utilisation(rows) : undefined,
                  jobs.some((job) => exposedTotal(job) > 0) ? exposed(rows) : undefined];
  return el('div', {class: 'training'}, el('h3', {}, name),
            el('p', {class: 'lead'}, facts.join(' · ')), summary(rows, variants, select),
            el('p', {class: 'legend'}, ...legend), breakdown(rows),
            el('div', {class: 'panels'}, ...panels));
}

// `select` shows a variant in the part of the page that treats one at a time.
export function training(report: Report, select: (name: string) => void) {
  return section('training', 'Training steps',
                 'The last simulated step of each job. Idle is waiting for other ranks (pipeline ' +
                   'bubble, stragglers), not for bytes; the bubble is idle over compute time.',
                 ...trainingNames(report).map((name) => block(report, name, select)));
}
