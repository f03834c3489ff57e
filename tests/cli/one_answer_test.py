#!/usr/bin/env python3
"""one_answer_test.py WEFT COUNT [SEED]: commands that answer the same question give the same answer.

Random scenarios. The time of every job by `weft run` is what `why`, `failures`, `advise` and `sweep`
begin with, what it is on the exported fabric and on one thread; and what `why` and `failures` say of
a change is what `weft run` says of the scenario with that change.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

draw = None  # random.Random
SCHEMES = ['{scheme: ecmp}', '{scheme: e_ecmp, qps: 4}', '{scheme: e_ecmp, qps: 16}', '{scheme: spray}', '{scheme: te}',
           '{scheme: ecmp, convergence: {}}']
LIBRARIES = ['{}', '{cost: line_rate}', '{transport: efa}', '{system: h200}', '{adaptive: true}']
FAULTS = ['link_down, link: "rtsw:0--ctsw:0"', 'link_degraded, link: "rtsw:0--ctsw:0", factor: 0.5', 'nic_down, nic: "nic:1"',
          'link_lossy, link: "rtsw:0->ctsw:0", loss: 0.001', 'switch_down, role: ctsw, count: 1',
          'link_down, link: "rtsw:0--ctsw:0", at: 100 us, until: 1 ms']
PLACES = ['topology', 'random', 'fragmented', 'scattered', 'rack_order', 'fitted']
COLLECTIVES = ['all_reduce', 'all_gather', 'all_to_all', 'broadcast', 'reduce_scatter', 'send_recv']


def job(name):
    if draw.random() < 0.25:
        what = f'model: llama3-8b, parallel: {{tp: {draw.choice([1, 2])}, dp: 4}}, zero: 3, batch: {draw.choice([8, 16])}'
    else:
        what = (f'collective: {draw.choice(COLLECTIVES)}, gpus: {draw.choice([2, 4, 6, 8])}, '
                f'bytes: {draw.choice(["8 B", "64 KiB", "1 MiB", "64 MiB"])}{draw.choice(["", ", start: 1 ms"])}')
    return f'  - {{name: {name}, {what}, place: {draw.choice(PLACES)}}}\n'


def scenario():
    """A scenario's text and whether it has faults."""
    pick = draw.choice
    faults = f'faults: [{{kind: {pick(FAULTS)}}}]\n' if draw.random() < 0.5 else ''
    fabric = (f'ai_zone, racks: {pick([3, 4])}, hosts_per_rack: 2, gpus_per_host: {pick([4, 8])}, spines: {pick([2, 3, 6, 8])}'
              if faults or draw.random() < 0.7 else pick(['fat_tree, k: 8', 'rail_optimized, groups: 2, hosts_per_group: 4, spines: 4']))
    jobs = ''.join(job(name) for name in 'abc'[:pick([1, 1, 2, 3])])
    engine = 'packet' if 'MiB' not in jobs and 'model' not in jobs and draw.random() < 0.5 else 'fluid'
    return (f'fabric: {{generator: {fabric}}}\nseed: {pick([1, 2, 3])}\nengine: {engine}\nrouting: {pick(SCHEMES)}\n'
            f'collectives: {pick(LIBRARIES)}\n{faults}jobs:\n{jobs}'), bool(faults)


class Weft:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.wrong, self.compared = [], {}

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def output(self, *arguments):
        """What it prints; None where it refuses the scenario."""
        ran = subprocess.run([self.program, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=300)
        if ran.returncode not in (0, 1, 2) or (ran.returncode == 2 and 'weft: error: ' not in ran.stderr):
            self.wrong.append(f'{" ".join(arguments)}: exit status {ran.returncode}: {ran.stderr[-500:]}')
        return ran.stdout if ran.returncode != 2 else None

    def json(self, *arguments):
        text = self.output(*arguments, '--json')
        return json.loads(text) if text else None

    def times(self, *arguments):
        """Seconds of each job by `weft run`: of the last step, or the mean; None where one does not end. No job is faster than
        its links allow, and no link carries more than it can."""
        report = self.json('run', *arguments)
        if report is None:
            return None
        variant = report['variants'][report['variant_order'][0]]
        jobs = [variant['jobs'][name] for name in variant['job_order']]
        least = 1 - (1e-6 if report['engine'] == 'fluid' else 1e-3)  # packets round the last one of each message
        self.wrong += [f'{" ".join(arguments)}: {name} takes {job["ratio"]} of its roofline' for name, job in variant['jobs'].items()
                       if job.get('ratio') and job['ratio'] < least]
        self.wrong += [f'{" ".join(arguments)}: {name} has a load of {tier["max_load"]}' for name, tier in variant['tiers'].items()
                       if tier['max_load'] > 1 + 1e-6]
        return [None if job['unfinished'] else job.get('step_time_s') or job['time_s']['mean'] for job in jobs]

    def compare(self, what, got, wanted, tolerance=1e-9):
        self.compared[what] = self.compared.get(what, 0) + 1
        same = got is not None and len(got) == len(wanted) and all(
            a is b or (a is not None and b is not None and abs(a - b) <= tolerance * abs(b)) for a, b in zip(got, wanted))
        if not same:
            with open(os.path.join(self.folder, 's.yaml'), encoding='utf-8') as file:
                self.wrong.append(f'{what}: {got}, not {wanted}\n{file.read()}')


def check_why(weft, base):
    answer = weft.json('why', 's.yaml')
    if answer is None:
        weft.wrong.append('weft why refuses what weft run runs')
        return
    weft.compare('why', [job['seconds'] for job in answer['jobs']], base)
    for row in answer['with']:
        if row['keys'].count('=') == 1 and '*' not in row['keys']:
            changed = weft.times('s.yaml', '--set', row['keys']) or [None] * len(base)
            weft.compare(f'why: {row["name"]}', row['speed'], [a / b if a and b else None for a, b in zip(base, changed)], 1e-6)


def check_failures(weft, base, has_faults):
    answer = weft.json('failures', 's.yaml', '--samples', '1')
    if answer is None:  # a job that does not end as it is
        return
    weft.compare('failures', answer['healthy_s'], base)
    for row in [] if has_faults else answer['rows']:
        for run in row['runs']:
            kind = 'link_down, link' if '--' in run['failed'] else 'switch_down, switch'
            weft.compare(f'failures: {kind}', run['seconds'],
                         weft.times('s.yaml', '--set', f'faults=[{{kind: {kind}: "{run["failed"]}"}}]') or [])


def check(weft):
    """Whether `weft run` takes the scenario that was drawn."""
    text, has_faults = scenario()
    weft.write('s.yaml', text)
    base = weft.times('s.yaml')
    if base is None:
        return False
    weft.compare('one thread', weft.times('s.yaml', '--threads', '1'), base, 0)
    check_why(weft, base)
    if 'engine: fluid' in text:
        check_failures(weft, base, has_faults)
    advice = weft.json('advise', 's.yaml')
    weft.compare('advise', advice and [job['seconds'] for job in advice['rounds'][0]['stay']], base)
    weft.write('fabric.yaml', weft.output('export', 's.yaml', '--to', 'yaml') or '')
    weft.write('exported.yaml', 'fabric: {file: fabric.yaml}\n' + text.split('\n', 1)[1])
    weft.compare('exported fabric', weft.times('exported.yaml'), base)
    seed = text.split('seed: ')[1][0]
    weft.write('sweep.yaml', text + f'sweep: {{seed: [{seed}]}}\n')
    rows = weft.json('sweep', 'sweep.yaml')
    weft.compare('sweep', rows and [row['time_s'] for row in rows['rows']], base)
    return True


def main():
    global draw
    count, seed = int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 1
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        weft = Weft(os.path.abspath(sys.argv[1]), folder)
        ran = sum(check(weft) for _ in range(count))
    print(f'{ran} of {count} ran:', json.dumps(weft.compared, indent=1))
    if ran < count / 2:
        weft.wrong.append('most scenarios are refused: nothing is tested')
    if weft.wrong:
        sys.exit('\n\n'.join(weft.wrong[:20]))


main()
