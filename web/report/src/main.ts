// Builds the page from what is embedded in it: a run's report or another command's. Nothing is fetched.
import 'uplot/dist/uPlot.min.css';
import './style.css';
import {bulkPage, tePage, type Bulk, type BulkPlan, type Engineered} from './backbone';
import {bandwidth} from './bandwidth';
import {colltracePage, type JobTrace} from './colltrace';
import {collectiveNames, fabricsOf, trainingNames, variantsOf, type Fabric, type Report,
        type Timelines} from './data';
import {forecastPage, scalePage, type Columns, type Forecast, type History, type Scaled} from './demand';
import {Detail} from './detail';
import {el} from './dom';
import type {FabricMaps} from './fabricmap';
import {failuresPage, type Failures} from './failures';
import * as format from './format';
import {curvesPage, inferPage, type Curves, type Quantiles, type Service} from './infer';
import {lifePage, type Life} from './life';
import {overview} from './overview';
import {sweepPage, type Sweep} from './sweep';
import {placePage, type Placement} from './place';
import {replayPage, type Replay} from './replay';
import {numbers, scenarios} from './tables';
import {training} from './training';
import type {Site} from './wanmap';

function fact(term: string, ...values: (Node | string)[]) {
  return el('div', {}, el('dt', {}, term), el('dd', {}, ...values));
}

function header(report: Report) {
  const fabrics = fabricsOf(report);
  const each = (line: (fabric: Fabric) => string) => fabrics.map(({variants, fabric}) =>
    el('div', {}, fabrics.length > 1 ? el('strong', {}, `${variants.join(', ')}: `) : '', line(fabric)));
  const roles = (fabric: Fabric) => Object.entries(fabric.roles)
    .map(([role, nodes]) => `${format.count(nodes)} ${role}`).join(' · ');
  const estimated = variantsOf(report).some((variant) => variant.value.estimate !== undefined);
  return el('header', {},
            el('p', {class: 'brand'}, 'weft run'), el('h1', {}, report.scenario.name),
            el('div', {class: 'lead'}, ...each((fabric) => fabric.text)),
            el('ul', {class: 'findings'}, ...report.findings.slice(0, 12).map((line) => el('li', {}, `${line}.`)),
               report.findings.length > 12 ? el('li', {}, `and ${report.findings.length - 12} more jobs below`) : undefined),
            el('dl', {}, fact('Nodes', ...each(roles)),
               fact('Oversubscription', ...each((f) => f.oversubscription.join(' · ') || format.none)),
               fact('Engine', estimated ? `${report.engine}, estimated from a part` : report.engine), fact('Seed', String(report.scenario.seed)),
               fact('Scenario', report.scenario.file),
               fact('Command', el('code', {}, report.command))));
}

function warnings(report: Report) {
  const items = variantsOf(report).flatMap((variant) =>
    variant.value.notes.filter((note) => note.severity === 'warning')
      .map((note) => el('li', {}, el('strong', {}, `${variant.name}: `), note.text)));
  if (items.length === 0) return undefined;
  const title = items.length === 1 ? '1 warning' : `${items.length} warnings`;
  return el('details', {class: 'warnings', open: ''}, el('summary', {}, title),
            el('ul', {}, ...items));
}

// Marks what belongs to the selected and to the first variant, wherever it stands.
function mark(report: Report, selected: string) {
  const first = report.variant_order[0];
  for (const node of document.querySelectorAll<HTMLElement>('[data-variant]')) {
    const name = node.dataset['variant'];
    node.classList.toggle('selected', name === selected);
    node.classList.toggle('first', name === first);
  }
}

const embedded = (id: string): unknown =>
  JSON.parse(document.getElementById(id)?.textContent ?? 'null');

function runPage(page: HTMLElement) {
  const report = embedded('report-data') as Report;
  const timelines = embedded('timeline-data') as Timelines;
  const detail = new Detail(report, timelines, (embedded('map-data') ?? {}) as FabricMaps, (name) => mark(report, name));
  const open = (name: string) => {
    detail.select(name);
    detail.root.scrollIntoView();
  };
  const banner = warnings(report);
  const trains = trainingNames(report).length > 0;
  // A report without any job keeps the frame of one with collectives.
  const collectives = !trains || collectiveNames(report).length > 0;
  page.append(header(report), ...(banner === undefined ? [] : [banner]),
               ...(trains ? [training(report, open)] : []),
               ...(collectives ? [overview(report, open), bandwidth(report)] : []), detail.root,
               numbers(report), scenarios(report),
               el('footer', {}, `weft ${report.weft_version}. The same scenario, seed and build ` +
                                'give this page again, byte for byte.'));
  // The second one, so that the page opens with a comparison.
  detail.select(report.variant_order[1] ?? report.variant_order[0] ?? '');
  for (const query of ['(prefers-color-scheme: dark)', 'print']) {
    window.matchMedia(query).addEventListener('change', () => detail.show());
  }
}

const page = document.getElementById('report');
const sweep = embedded('sweep-data') as Sweep | null;
const failures = embedded('failures-data') as Failures | null;
const service = embedded('infer-data') as Service | null;
const curves = embedded('infer-curves') as Curves | null;
const life = embedded('life-data') as Life | null;
const placement = embedded('place-data') as Placement | null;
const replay = embedded('replay-data') as Replay | null;
const trace = embedded('colltrace-data') as JobTrace | null;
const engineered = embedded('te-data') as Engineered | null;
const bulk = embedded('bulk-data') as Bulk | null;
const forecast = embedded('forecast-data') as Forecast | null;
const scaled = embedded('scale-data') as Scaled | null;
if (page !== null && sweep !== null) sweepPage(page, sweep);
else if (page !== null && failures !== null) failuresPage(page, failures);
else if (page !== null && service !== null) inferPage(page, service, embedded('infer-quantiles') as Quantiles);
else if (page !== null && curves !== null) curvesPage(page, curves);
else if (page !== null && life !== null) lifePage(page, life);
else if (page !== null && placement !== null) placePage(page, placement);
else if (page !== null && replay !== null) replayPage(page, replay);
else if (page !== null && trace !== null) colltracePage(page, trace);
else if (page !== null && engineered !== null) tePage(page, engineered, embedded('sites-data') as Site[]);
else if (page !== null && bulk !== null) bulkPage(page, bulk, embedded('bulk-plan') as BulkPlan, embedded('sites-data') as Site[]);
else if (page !== null && forecast !== null) forecastPage(page, forecast, embedded('forecast-history') as History);
else if (page !== null && scaled !== null) scalePage(page, scaled, embedded('scale-columns') as Columns);
else if (page !== null) runPage(page);
