// Every number of the report as text.
import {collectiveNames, isTraining, jobsOf, packetsOf, packetTiersOf, tiersOf, trainingNames, variantsOf, type Named, type Packets,
        type Report, type TrainingJob, type Variant} from './data';
import {el, number, section, table, text} from './dom';
import {completionSummary} from './completion';
import * as format from './format';
import {settings} from './overview';
import {dimensions} from './theme';

function jobTable(report: Report) {
  const columns = [text('Variant'), text('Job'), text('Operation'), text('Algorithm'),
                   text('Placement'), number('GPUs'), number('Per rank'), number('Iterations'),
                   number('Time, mean'), number('min'), number('max'), number('algbw (GB/s)'),
                   number('busbw (GB/s)'), number('Roofline'), number('× roofline')];
  const collectives = (variant: Variant) =>
    jobsOf(variant).filter((job) => !isTraining(job.value));
  const of = (variant: Named<Variant>) => collectives(variant.value).map(({name, value}) => [
    variant.name, name, value.op, value.algorithm, value.placement, format.count(value.gpus),
    format.bytes(value.bytes_per_rank), format.count(value.iterations),
    value.unfinished === null ? format.seconds(value.time_s.mean)
      : format.unfinished(value.unfinished), format.seconds(value.time_s.min),
    format.seconds(value.time_s.max), format.number(value.algbw_GBps),
    format.number(value.busbw_GBps), format.seconds(value.roofline_s),
    format.ratio(value.ratio)]);
  return table('Jobs', columns, variantsOf(report).flatMap(of));
}

function trainingTable(report: Report) {
  const jobs = variantsOf(report).flatMap((variant) => jobsOf(variant.value).flatMap((job) =>
    isTraining(job.value) ? [{variant: variant.name, name: job.name, value: job.value}] : []));
  const exposed = dimensions.filter((kind) => jobs.some((job) => job.value.exposed_s[kind]));
  const columns = [text('Variant'), text('Job'), text('Model'), text('Plan'), text('Placement'),
                   number('GPUs'), number('Step'), number('Compute'),
                   ...exposed.map((dimension) => number(`Exposed ${dimension}`)), number('Idle'),
                   number('Bubble'), number('TFLOP/s per GPU'), number('MFU'),
                   number('Tokens/s per GPU'), number('Roofline'), number('Memory'),
                   number('Bootstrap'), number('Checkpoint')];
  const row = (variant: string, name: string, job: TrainingJob) => [
    variant, name, job.model, job.plan, job.placement, format.count(job.gpus),
    job.unfinished === null ? format.seconds(job.step_time_s) : format.unfinished(job.unfinished),
    format.seconds(job.compute_s), ...exposed.map((dimension) => format.seconds(job.exposed_s[dimension] ?? null)),
    format.seconds(job.idle_s), format.percent(job.bubble), format.number(job.tflops_per_gpu),
    format.percent(job.mfu), format.number(job.tokens_per_s_per_gpu),
    format.seconds(job.roofline_s), format.bytes(job.memory_bytes),
    format.seconds(job.bootstrap_s), format.seconds(job.checkpoint_s)];
  return table('Training steps', columns, jobs.map((job) => row(job.variant, job.name, job.value)));
}

function tierTable(report: Report) {
  const columns = [text('Variant'), text('Tier'), number('Links'), number('Mean load'),
                   number('Max load'), number('MMR (max / mean)')];
  const of = (variant: Named<Variant>) => tiersOf(variant.value).map((tier) => [
    variant.name, format.tierName(tier.name), format.count(tier.value.links),
    format.percent(tier.value.mean_load), format.percent(tier.value.max_load),
    format.ratio(tier.value.mmr)]);
  return table('Link tiers', columns, variantsOf(report).flatMap(of));
}

function packetTable(report: Report) {
  const columns = [text('Variant'), text('Transport'), number('Packet hops'), number('Pauses'),
                   number('ECN marks'), number('CNPs'), number('Drops'), number('Trims'),
                   number('Sent again'), number('Timeouts'), number('Fullest switch')];
  const row = ({name, value}: Named<Packets>) => [
    name, value.transport, ...[value.hops, value.pause_frames, value.ecn_marks, value.cnps,
                               value.drops, value.trims, value.retransmissions,
                               value.timeouts].map(format.count),
    format.bytes(value.buffer_max_bytes)];
  return table('Packets', columns, packetsOf(report).map(row));
}

function queueTable(report: Report) {
  const columns = [text('Variant'), text('Tier'), number('Packets'), number('Queue, p50'),
                   number('p99'), number('max'), number('Pauses'), number('One pause, p50'),
                   number('p99'), number('Longest paused link'), number('ECN marks'),
                   number('Drops')];
  const of = (variant: Named<Packets>) => packetTiersOf(variant.value).map(({name, value}) => [
    variant.name, format.tierName(name), format.count(value.packets),
    format.bytes(value.queue_bytes.p50), format.bytes(value.queue_bytes.p99),
    format.bytes(value.queue_bytes.max), format.count(value.pauses),
    format.seconds(value.pause_s.p50), format.seconds(value.pause_s.p99),
    format.seconds(value.paused_max_s), format.count(value.ecn_marks),
    format.count(value.drops)]);
  return table('Queues', columns, packetsOf(report).flatMap(of));
}

function failureTable(report: Report) {
  const columns = [text('Variant'), text('Failure'), number('At'), number('Flows hit'),
                   number('Path again, median'), number('last'), number('Never'),
                   number('Stalled'), number('Bytes lost'), number('Packets lost')];
  const rows = variantsOf(report).flatMap(({name, value}) => value.failures.map((failure) => [
    name, failure.what, format.seconds(failure.at_s), format.count(failure.flows_hit),
    format.seconds(failure.path_again_s.median), format.seconds(failure.path_again_s.max),
    format.count(failure.flows_stranded), format.bytes(failure.stalled_bytes),
    format.bytes(failure.lost_bytes),
    failure.lost_packets === null ? format.none : format.count(failure.lost_packets)]));
  return rows.length > 0 ? table('Failures', columns, rows) : undefined;
}

function variantTable(report: Report) {
  const columns = [text('Variant'), text('Settings'), text('Flow completion'), text('Digest')];
  const rows = variantsOf(report).map(({name, value}) =>
    [name, settings(value), completionSummary(value.flow_completion), value.digest]);
  return table('Variants', columns, rows);
}

export function numbers(report: Report) {
  return section('numbers', 'All numbers', '', variantTable(report),
                 trainingNames(report).length > 0 ? trainingTable(report) : undefined,
                 collectiveNames(report).length > 0 ? jobTable(report) : undefined,
                 failureTable(report), tierTable(report),
                 ...(packetsOf(report).length > 0 ? [packetTable(report), queueTable(report)]
                                                  : []));
}

export function noteList(variant: Variant) {
  if (variant.notes.length === 0) return undefined;
  return el('ul', {class: 'notes'}, ...variant.notes.map((note) =>
    el('li', {class: note.severity},
       el('strong', {}, note.severity === 'warning' ? 'Warning: ' : 'Note: '), note.text)));
}

export function scenarios(report: Report) {
  const parts = variantsOf(report).map(({name, value}) =>
    el('details', {}, el('summary', {}, name, el('small', {}, `digest ${value.scenario_digest}`)),
       el('pre', {}, value.scenario_text)));
  return section('scenario', 'Effective scenario',
                 'What each variant ran with, after overlays and command-line settings.', ...parts);
}
