// The part of the page that shows one variant at a time, chosen by tabs.
import {trainingNames, variantsOf, type Named, type Report, type Timelines, type Variant}
  from './data';
import {el, section} from './dom';
import {completionChart, completionSummary} from './completion';
import {fabricMap, mapTop, type FabricMaps} from './fabricmap';
import {heatMaps, loadMaxima} from './heatmap';
import {settings} from './overview';
import {steps} from './steps';
import {noteList} from './tables';
import {readTheme, type Theme} from './theme';
import {tierPanels, type Choice} from './tiers';

function legend(selected: string, first: string, others: boolean) {
  return el('p', {class: 'legend'}, el('span', {class: 'key selected'}, selected),
            first === selected ? undefined : el('span', {class: 'key first dashed'}, first),
            others ? el('span', {class: 'key other thin'}, 'other variants') : undefined);
}

export class Detail {
  readonly root: HTMLElement;
  private readonly variants: Named<Variant>[];
  private readonly tabs: HTMLElement[];
  private readonly list = el('div', {role: 'tablist', 'aria-label': 'Variants'});
  private readonly panel = el('div', {role: 'tabpanel', id: 'variant-panel', tabindex: '-1'});
  private readonly maxima: Map<string, number>;
  private at = 0;
  private ends: (() => void)[] = [];

  constructor(report: Report, private readonly timelines: Timelines, private readonly maps: FabricMaps,
              private readonly changed: (name: string) => void) {
    this.variants = variantsOf(report);
    this.maxima = loadMaxima(report);
    this.tabs = this.variants.map((variant, at) => this.tab(variant.name, at));
    this.list.append(...this.tabs);
    this.list.addEventListener('keydown', (event) => this.key(event));
    const title = trainingNames(report).length > 0 ? 'Steps, links and flows' : 'Links and flows';
    this.root = section('variants', title, '', this.list, this.panel);
  }

  select(name: string) {
    const at = this.variants.findIndex((variant) => variant.name === name);
    if (at >= 0) this.show(at);
  }

  // Draws everything anew: after a choice, or when the colours of the page have changed.
  show(at = this.at) {
    this.at = at;
    const selected = this.variants[at];
    const first = this.variants[0];
    if (selected === undefined || first === undefined) return;
    this.tabs.forEach((tab, index) => {
      tab.setAttribute('aria-selected', String(index === at));
      tab.setAttribute('tabindex', index === at ? '0' : '-1');
    });
    this.reveal(this.tabs[at]);
    this.panel.setAttribute('aria-labelledby', `tab-${at}`);
    this.ends.forEach((end) => end());
    this.panel.replaceChildren();
    this.fill(selected, first);
    this.changed(selected.name);
  }

  // The list scrolls sideways when there are many variants.
  private reveal(tab: HTMLElement | undefined) {
    if (tab === undefined) return;
    const room = this.list.clientWidth - tab.offsetWidth;
    this.list.scrollLeft = tab.offsetLeft - Math.max(room, 0) / 2;
  }

  private fill(selected: Named<Variant>, first: Named<Variant>) {
    const theme = readTheme();
    const choice = {selected, first};
    const head = el('p', {class: 'lead'}, el('strong', {}, selected.name),
                    ` – ${settings(selected.value)}`);
    const notes = noteList(selected.value);
    this.panel.append(head, ...(notes === undefined ? [] : [notes]));
    this.ends = [steps(this.panel, selected, this.timelines, theme)];
    const map = Object.hasOwn(this.maps, selected.name) ? this.maps[selected.name] : undefined;
    if (map !== undefined && map.edges.length > 0) {
      const figure = el('figure', {class: 'panel wide'},
                        el('figcaption', {}, el('strong', {}, 'The fabric'),
                           el('small', {}, 'bundles of cables by load; faults as when most were there')));
      this.panel.append(el('h3', {}, 'Fabric map'), figure);
      this.ends.push(fabricMap(figure, map, mapTop(this.maps), theme));
    }
    if (Object.keys(selected.value.tiers).length > 0) {
      this.panel.append(el('h3', {}, 'Link load by tier'),
                        legend(selected.name, first.name, false));
      this.ends.push(tierPanels(this.panel, choice, theme));
    }
    if (selected.value.heat_maps.length > 0) {
      const heat = el('div', {class: 'maps'});
      this.panel.append(el('h3', {}, 'Load of each link'), heat);
      this.ends.push(heatMaps(heat, selected.value.heat_maps, this.maxima, theme));
    }
    this.completion(choice, theme);
  }

  // Left out when no variant had flows.
  private completion(choice: Choice, theme: Theme) {
    if (this.variants.every(({value: {flow_completion: flows}}) =>
      flows.finished + flows.unfinished === 0)) return;
    const {selected, first} = choice;
    const flows = el('figure', {class: 'panel wide'},
                     el('figcaption', {}, el('strong', {}, 'Flow completion'),
                        el('small', {}, completionSummary(selected.value.flow_completion))));
    this.panel.append(el('h3', {}, 'Flow-completion times'),
                      legend(selected.name, first.name, this.variants.length > 2), flows);
    this.ends.push(completionChart(flows, this.variants, choice, theme));
  }

  private tab(name: string, at: number) {
    const tab = el('button', {type: 'button', role: 'tab', id: `tab-${at}`,
                              'aria-controls': 'variant-panel'}, name);
    tab.addEventListener('click', () => this.show(at));
    return tab;
  }

  private key(event: KeyboardEvent) {
    const last = this.tabs.length - 1;
    const next: Record<string, number> = {
      ArrowLeft: this.at === 0 ? last : this.at - 1,
      ArrowRight: this.at === last ? 0 : this.at + 1,
      Home: 0,
      End: last,
    };
    const at = next[event.key];
    if (at === undefined) return;
    event.preventDefault();
    this.show(at);
    this.tabs[at]?.focus();
  }
}
