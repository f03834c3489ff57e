// The control of time: which instant the pages show.
import {el} from '../dom';
import * as format from '../format';
import type {Network} from './api';
import {age, button} from './ui';

const minuteMs = 60e3;
const hourMs = 3600e3;

// "2026-11-28T04:01:35" of this place, as a field for dates and times has it.
function local(ms: number) {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * minuteMs).toISOString().slice(0, 19);
}

// The address of the same page at another instant.
export function hashAt(at: string | undefined) {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const of = new URLSearchParams(query);
  if (at === undefined) of.delete('at');
  else of.set('at', at);
  const text = of.toString();
  return `#/${path === '' ? 'cases' : path}${text === '' ? '' : `?${text}`}`;
}

export class TimeBar {
  readonly open = button('Past', () => this.choose(), {id: 'past', 'aria-expanded': 'false', 'aria-controls': 'time',
                                                       title: 'The network at an instant that is over ( t )'});
  readonly root = el('section', {id: 'time', 'aria-label': 'Time', hidden: ''});
  private readonly words = el('p', {role: 'status', class: 'words-of-time'});
  private readonly field = el('input', {type: 'datetime-local', step: '1', 'aria-label': 'Instant'}) as HTMLInputElement;
  private readonly buttons: Record<string, HTMLElement>;
  private at: string | undefined;
  private past: Network['past'] = null;

  constructor(private readonly now: () => number) {
    const step = (ms: number) => () => this.go(new Date(this.shown() + ms).toISOString());
    const make = (words: string, title: string, key: string, does: () => void) =>
      button(words, does, {'aria-label': title, title: `${title} ( ${key} )`, 'aria-keyshortcuts': key});
    this.buttons = {
      '{': make('−1 h', 'An hour back', '{', step(-hourMs)), '[': make('−1 min', 'A minute back', '[', step(-minuteMs)),
      ',': make('‹ event', 'To the event before', ',', () => this.go(this.past?.previous ?? this.at)),
      '.': make('event ›', 'To the next event', '.', () => this.go(this.past?.next ?? this.at)),
      ']': make('+1 min', 'A minute on', ']', step(minuteMs)), '}': make('+1 h', 'An hour on', '}', step(hourMs)),
      l: make('Live', 'The network now', 'l', () => this.go(undefined))};
    this.field.addEventListener('change', () => {
      if (this.field.value !== '') this.go(new Date(this.field.value).toISOString());
    });
    const {'{': hourBack, '[': back, ',': before, '.': next, ']': on, '}': hourOn, l: live} = this.buttons;
    this.root.append(this.words, el('div', {class: 'steps'}, hourBack, back, before, this.field, next, on, hourOn, live));
  }

  private shown() { return this.at === undefined ? this.now() : Date.parse(this.at); }

  // An instant that is not over is now.
  private go(at: string | undefined) {
    location.hash = hashAt(at === undefined || Date.parse(at) >= this.now() ? undefined : at);
    if (at === undefined) this.root.hidden = true;
  }

  private choose() {
    this.root.hidden = false;
    this.open.setAttribute('aria-expanded', 'true');
    this.field.value = local(this.shown());
    this.field.focus();
  }

  // `network`: once it was read; `failure`: why it could not be.
  show(at: string | undefined, network: Network | undefined, failure: string) {
    if (at !== this.at) this.past = null;
    this.at = at;
    this.past = network?.past ?? this.past;
    this.root.classList.toggle('is-past', at !== undefined);
    if (at !== undefined) this.root.hidden = false;
    this.open.setAttribute('aria-expanded', String(!this.root.hidden));
    if (document.activeElement !== this.field) this.field.value = local(this.shown());
    for (const [key, ends] of [[',', this.past?.previous], ['.', this.past?.next]] as const)
      this.buttons[key]?.toggleAttribute('disabled', ends === undefined || ends === null);
    if (at === undefined) return this.words.replaceChildren('The network now. Choose an instant that is over.');
    const lost = network?.past?.not_known.length ?? 0;
    this.words.replaceChildren(el('strong', {}, 'The network as it was at ',
      el('time', {datetime: at, title: at}, local(this.shown()).replace('T', ' '))),
      failure !== '' ? `: ${failure}` : network === undefined ? ': reading the log …'
        : `, ${age(at, this.now())} ago, by ${format.count(network.past?.events ?? 0)} events of the log. Nothing can be done here: go back to live for that.` +
          (lost > 0 ? ` Of ${format.count(lost)} case${lost === 1 ? '' : 's'} that began before what is read it is not known how they stood.` : ''));
  }

  // Whether the key is one of the control's.
  press(key: string) {
    if (key === 't') this.choose();
    else if (this.at !== undefined && key in this.buttons) this.buttons[key]?.click();
    else return false;
    return true;
  }
}
