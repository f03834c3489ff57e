// The cases and repairs that are known, kept up to date by the service's events.
import {ask, pages, type Capacity, type Case, type Handling, type Network, type Repair} from './api';
import {setServiceNow} from './ui';

type Listener = (about: {cases: Set<string>; all: boolean}) => void;

const isOpen = (standing: string) => standing === 'open' || standing === 'provisional';
const redrawMs = 250;  // at most so often, whatever comes
const capacityMs = 2000;

// What the pages show, of now or of an instant.
export type Known = Pick<Live, 'cases' | 'repairOf' | 'handlingOf' | 'loaded' | 'failure' | 'capacity' |
                               'readCapacity' | 'refresh'> & {network?: Network | undefined};

// The same as it was at an instant, read once. Repairs and capacity of then are not kept.
export class Then implements Known {
  readonly cases = new Map<string, Case>();
  readonly repairOf = new Map<string, Repair>();
  readonly handlingOf = new Map<string, Handling>();
  readonly capacity = undefined;
  loaded = false;
  failure = '';
  network: Network | undefined;

  constructor(readonly at: string, listener: (then: Then) => void) {
    void this.read().catch((error: Error) => { this.failure = error.message; }).finally(() => listener(this));
  }
  private async read() {
    const at = `at=${encodeURIComponent(this.at)}`;
    this.network = await ask<Network>(`/v1/network?${at}`);
    for (const standing of ['open', 'provisional'])
      await pages<Case>(`/v1/cases?state=${standing}&limit=1000&members=0&${at}`, (items) => {
        for (const item of items) this.cases.set(item.id, item);
      });
    await pages<Handling>(`/v1/handling?limit=1000&${at}`, (items) => {
      for (const item of items) this.handlingOf.set(item.id, item);
    });
    this.loaded = true;
  }
  readCapacity() { return Promise.resolve(); }
  refresh() { return Promise.resolve(); }
}

export class Live {
  readonly cases = new Map<string, Case>();      // that are open
  readonly repairOf = new Map<string, Repair>();  // by case: the one that changed last
  readonly handlingOf = new Map<string, Handling>();
  state: 'connecting' | 'live' | 'connection lost' = 'connecting';
  loaded = false;
  failure = '';
  capacity: Capacity | undefined;
  // By case, what events told of while lists were being read, which are older.
  private readonly heard = {cases: new Set<string>(), repairs: new Set<string>(), handling: new Set<string>()};
  private changed = new Set<string>();
  private all = false;
  private timer = 0;
  private loading: Promise<void> | undefined;

  constructor(private readonly listener: Listener) {}

  start() {
    const events = new EventSource('/v1/events');
    events.addEventListener('hello', () => {
      this.state = 'live';
      if (!this.loaded) void this.load();
      this.tell('', true);
    });
    events.addEventListener('reset', () => void this.load());
    events.addEventListener('case', (event) => this.takeCase(JSON.parse(event.data as string) as Case));
    events.addEventListener('repair', (event) => {
      const repair = JSON.parse(event.data as string) as Partial<Repair>;
      // The kill switch and freezes come as a document without cases.
      if (repair.cases !== undefined) this.hearRepair(repair as Repair);
      void this.readCapacity();
    });
    events.addEventListener('handling', (event) => {
      const handling = JSON.parse(event.data as string) as Handling;
      this.heard.handling.add(handling.id);
      this.handlingOf.set(handling.id, handling);
      this.tell(handling.id, false);
    });
    // A command such as the kill switch changes no document of a case.
    events.addEventListener('audit', () => void this.readCapacity());
    events.onerror = () => {
      this.state = 'connection lost';
      if (!this.loaded) void this.load();
      this.tell('', true);
    };
  }

  private load() {
    this.loading ??= this.read().finally(() => { this.loading = undefined; });
    return this.loading;
  }

  private async read() {
    for (const ids of Object.values(this.heard)) ids.clear();
    const found = new Set<string>();
    try {
      for (const standing of ['open', 'provisional'])
        await pages<Case>(`/v1/cases?state=${standing}&limit=1000&members=0`, (items) => {
          for (const item of items) {
            found.add(item.id);
            if (!this.heard.cases.has(item.id)) this.cases.set(item.id, item);
          }
        });
      for (const id of this.cases.keys())
        if (!found.has(id) && !this.heard.cases.has(id)) this.cases.delete(id);
      this.loaded = true;
      this.failure = '';
      this.tell('', true);
      await this.readCapacity();
      await pages<Handling>('/v1/handling?limit=1000', (items) => {
        for (const item of items)
          if (!this.heard.handling.has(item.id)) this.handlingOf.set(item.id, item);
      });
      const repairs: Repair[] = [];
      await pages<Repair>('/v1/repairs?limit=1000', (items) => repairs.push(...items));
      for (const repair of repairs.reverse())
        for (const {id} of repair.cases)
          if (!this.heard.repairs.has(id)) this.repairOf.set(id, repair);
    } catch (error) {
      this.failure = String((error as Error).message);
    }
    this.tell('', true);
  }

  private capacityAt = 0;
  private capacityTimer = 0;
  // At most every two seconds, for it costs a walk over all links; what is asked for earlier, later.
  async readCapacity(): Promise<void> {
    const early = this.capacityAt + capacityMs - Date.now();
    if (early > 0) {
      if (this.capacityTimer === 0) this.capacityTimer = window.setTimeout(() => void this.readCapacity(), early);
      return;
    }
    window.clearTimeout(this.capacityTimer);
    this.capacityTimer = 0;
    this.capacityAt = Date.now();
    try {
      this.capacity = await ask<Capacity>('/v1/capacity');
      setServiceNow(this.capacity.now);
    } catch { /* what is known stays */ }
    this.tell('', true);
  }

  // After a command of one's own: at once.
  refresh() {
    this.capacityAt = 0;
    return this.readCapacity();
  }

  private takeCase(item: Case) {
    this.heard.cases.add(item.id);
    const records = item.members.length +
      (item.members_summarised ?? []).reduce((sum, row) => sum + row.records, 0);
    if (isOpen(item.standing)) this.cases.set(item.id, {...item, records, members: []});
    else this.cases.delete(item.id);
    this.tell(item.id, false);
  }

  private hearRepair(repair: Repair) {
    for (const {id} of repair.cases) {
      this.heard.repairs.add(id);
      this.repairOf.set(id, repair);
      this.tell(id, false);
    }
  }

  private tell(id: string, all: boolean) {
    if (id !== '') this.changed.add(id);
    this.all ||= all;
    if (this.timer !== 0) return;
    // What comes alone is shown at once; what comes in floods, four times a second.
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      const about = {cases: this.changed, all: this.all};
      this.changed = new Set();
      this.all = false;
      this.listener(about);
    }, all && !this.shown ? 0 : redrawMs);
    this.shown ||= this.loaded;
  }
  private shown = false;
}
