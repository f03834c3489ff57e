// The console of a service: pages by the address behind "#", kept up to date by events.
import '../style.css';
import './console.css';
import {el} from '../dom';
import {CasePage} from './case';
import {CaseList} from './cases';
import {JobPage} from './jobs';
import {Live, Then} from './live';
import {CapacityPage, FabricPage, FeedPage, MinutePage, notKeptPage, ProbePage} from './network';
import {TimeBar} from './past';
import {isPast, liveNow, setInstant, then} from './ui';

interface View {
  root: HTMLElement;
  update: (cases: Set<string>, all: boolean) => void;
}

const names = ['cases', 'jobs', 'fabric', 'probes', 'minutes', 'capacity', 'feeds'];
const slowMs = 3000;  // pages that cost the service something are read at most so often

const state = el('span', {role: 'status', id: 'live'});
const alarm = el('a', {href: '#/capacity', class: 'alarm', hidden: ''}, 'Kill switch on: weft takes no action');
const nav = el('nav', {'aria-label': 'Pages'}, ...names.map((name) =>
  el('a', {href: `#/${name}`, 'data-page': name}, name[0]?.toUpperCase() + name.slice(1))));
const main = el('main', {id: 'main', tabindex: '-1'});
let view: View | undefined;
const bar = new TimeBar(liveNow);

// In sight wherever the page is scrolled to.
function showState() {
  state.textContent = isPast() ? 'past' : live.state;
  state.className = live.state === 'live' && !isPast() ? 'good' : 'bad';
}

const live = new Live(({cases, all}) => {
  showState();
  alarm.hidden = live.capacity?.kill_switch !== true;
  if (!isPast()) view?.update(cases, all);
});
let was: Then | undefined;  // of the instant that is shown, or was last

function slow(page: {root: HTMLElement; read: () => Promise<void>}): View {
  let at = 0;
  let timer = 0;
  const read = () => {
    timer = 0;
    at = Date.now();
    void page.read();
  };
  read();
  return {root: page.root, update: () => {
    if (isPast()) return read();
    if (timer === 0) timer = window.setTimeout(read, Math.max(at + slowMs - Date.now(), 0));
  }};
}

// What an instant was like, once; the pages are shown again when it is read.
function wasAt(at: string) {
  if (was?.at !== at)
    was = new Then(at, (found) => {
      if (found !== was) return;
      bar.show(at, found.network, found.failure);
      view?.update(new Set(), true);
    });
  return was;
}

function viewOf(name: string, rest: string, query: URLSearchParams, known: Live | Then): View {
  if (name === 'case') {
    const id = decodeURIComponent(rest);
    const page = new CasePage(known, id);
    return {root: page.root, update: (cases, all) => {
      if (cases.has(id) || isPast()) void page.read();
      else if (all) page.showRepair();  // repairs are read after the cases
    }};
  }
  if (name === 'fabric') return slow(new FabricPage(known));
  if (name === 'probes') return slow(new ProbePage(known));
  if (name === 'minutes') return slow(new MinutePage(known));
  if (name === 'capacity') return slow(new CapacityPage(known));
  if (name === 'feeds')
    return slow(isPast() ? notKeptPage('Feeds', 'Who had spoken when, and what was not understood, is not kept for instants that are over.')
      : new FeedPage(known));
  if (name === 'jobs')
    return slow(isPast() ? notKeptPage('Jobs', 'Which jobs ran is not kept for instants that are over.') : new JobPage(known));
  const list = new CaseList(known, query, (changed) => {
    const text = changed.toString();
    history.replaceState(null, '', `#/cases${text === '' ? '' : `?${text}`}`);
  });
  list.show();
  return {root: list.root, update: () => list.show()};
}

function open() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [name = 'cases', rest = ''] = path.split('/');
  const of = new URLSearchParams(query);
  const at = of.get('at') ?? undefined;
  setInstant(at);
  showState();
  const known = at === undefined ? live : wasAt(at);
  bar.show(at, at === undefined ? undefined : was?.network, at === undefined ? '' : was?.failure ?? '');
  view = viewOf(name, rest, of, known);
  main.replaceChildren(view.root);
  const here = name === 'case' || !names.includes(name) ? 'cases' : name;
  for (const item of nav.querySelectorAll('a')) {
    item.setAttribute('href', then(`#/${item.getAttribute('data-page') ?? ''}`));
    if (item.getAttribute('data-page') === here) item.setAttribute('aria-current', 'page');
    else item.removeAttribute('aria-current');
  }
  document.title = name === 'case' ? `${decodeURIComponent(rest)} · weft` : `${here} · weft`;
  window.scrollTo(0, 0);
}

const goTo: Record<string, string> =
  {c: 'cases', j: 'jobs', f: 'fabric', p: 'probes', m: 'minutes', a: 'capacity', e: 'feeds'};
// "/" searches and Enter goes to what was found, "g" and one of these goes there, j and k walk through the cases.
let wantsPage = false;
function keys(event: KeyboardEvent) {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === 'Enter' && (event.target as HTMLElement).id === 'search') {
    main.querySelector<HTMLElement>('tbody th a, tbody td a')?.focus();
    event.preventDefault();
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const page = goTo[event.key];
  const rows = [...main.querySelectorAll<HTMLElement>('tbody tr > :first-child a, tbody tr > :nth-child(2) a')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  if (wantsPage && page !== undefined) location.hash = then(`#/${page}`);
  else if (event.key === '/') main.querySelector<HTMLElement>('#search')?.focus();
  else if (event.key === 'j' || event.key === 'k')
    rows[Math.min(Math.max(at + (event.key === 'j' ? 1 : -1), 0), rows.length - 1)]?.focus();
  else if (bar.press(event.key)) event.preventDefault();
  wantsPage = event.key === 'g';
  if (event.key === '/') event.preventDefault();
}

document.getElementById('console')?.append(
  el('a', {href: '#main', class: 'skip'}, 'To the content'),
  el('header', {class: 'top'}, el('a', {href: '#/cases', class: 'home'}, 'weft'), nav, alarm, bar.open, state), bar.root, main);
document.querySelector('.skip')?.addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
window.addEventListener('hashchange', open);
window.addEventListener('keydown', keys);
// Ages grow, and pages without events of their own are read again.
window.setInterval(() => { if (!isPast()) view?.update(new Set(), !location.hash.startsWith('#/case/')); }, 10_000);
open();
live.start();
