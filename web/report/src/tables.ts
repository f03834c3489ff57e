// Every number of the report as text.
import {jobsOf, tiersOf, variantsOf, type Named, type Report, type Variant} from './data';
import {el, section, table, type Column} from './dom';
import {completionSummary} from './completion';
import * as format from './format';
import {settings} from './overview';

const text = (title: string): Column => ({title, align: 'left'});
const number = (title: string): Column => ({title, align: 'right'});

function jobTable(report: Report) {
  const columns = [text('Variant'), text('Job'), text('Operation'), text('Algorithm'),
                   text('Placement'), number('GPUs'), number('Per rank'), number('Iterations'),
                   number('Time, mean'), number('min'), number('max'), number('algbw (GB/s)'),
                   number('busbw (GB/s)'), number('Roofline'), number('× roofline')];
  const of = (variant: Named<Variant>) => jobsOf(variant.value).map(({name, value}) => [
    variant.name, name, value.op, value.algorithm, value.placement, format.count(value.gpus),
    format.bytes(value.bytes_per_rank), format.count(value.iterations),
    format.seconds(value.time_s.mean), format.seconds(value.time_s.min),
    format.seconds(value.time_s.max), format.bandwidth(value.algbw_GBps),
    format.bandwidth(value.busbw_GBps), format.seconds(value.roofline_s),
    format.ratio(value.ratio)]);
  return table('Jobs', columns, variantsOf(report).flatMap(of));
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

function variantTable(report: Report) {
  const columns = [text('Variant'), text('Settings'), text('Flow completion'), text('Digest')];
  const rows = variantsOf(report).map(({name, value}) =>
    [name, settings(value), completionSummary(value.flow_completion), value.digest]);
  return table('Variants', columns, rows);
}

export function numbers(report: Report) {
  return section('numbers', 'All numbers', '', variantTable(report), jobTable(report),
                 tierTable(report));
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
