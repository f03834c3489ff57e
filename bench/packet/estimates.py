#!/usr/bin/env python3
"""How far `engine.estimate` is off: jobs simulated whole, and estimated from a share of them.

    bench/packet/estimates.py                    # all rows, 0.05: a quarter of an hour
    bench/packet/estimates.py 8b-dp moe --share 0.02

WEFT names another weft than build/release/weft. A row costs the CPU time of its whole run.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

WEFT = os.environ.get('WEFT', 'build/release/weft')
ROCE = '{name: roce, pfc: true, cc: dcqcn}'
GPT_13B = ('{kind: transformer, layers: 40, hidden: 5120, ffn: 20480, heads: 40, '
           'vocabulary: 50257, sequence: 2048}')
EXPERTS = ('{kind: transformer, layers: 8, hidden: 2048, ffn: 1024, heads: 16, vocabulary: 32000, '
           'sequence: 2048, experts: 16, experts_per_token: 2, expert_ffn: 1024}')


def zone(racks, spines):
    return (f'{{generator: ai_zone, racks: {racks}, hosts_per_rack: 2, gpus_per_host: 8, '
            f'spines: {spines}}}')


def training(model, parallel, batch):
    return f'{{name: job, model: {model}, parallel: {{{parallel}}}, batch: {batch}, repeat: 1}}'


def collective(op, size, algorithm):
    return f'{{name: job, collective: {op}, bytes: {size}, gpus: 64, algorithm: {algorithm}}}'


# name: fabric, jobs, transport
ROWS = {
    '8b-dp': (zone(4, 4), [training('llama3-8b', 'tp: 1, pp: 1, dp: 64', 64)], ROCE),
    '8b-dp-nscc': (zone(4, 4), [training('llama3-8b', 'tp: 1, pp: 1, dp: 64', 64)], 'nscc'),
    '8b-thin': (zone(4, 2), [training('llama3-8b', 'tp: 1, pp: 1, dp: 64', 64)], ROCE),
    '8b-tp': (zone(4, 4), [training('llama3-8b', 'tp: 8, pp: 1, dp: 8', 8)], ROCE),
    '8b-pp': (zone(4, 4), [training('llama3-8b', 'tp: 4, pp: 4, dp: 4', 64)], ROCE),
    '13b-dp': (zone(8, 8), [training(GPT_13B, 'tp: 8, pp: 1, dp: 16', 64)], ROCE),
    '13b-pp': (zone(8, 8), [training(GPT_13B, 'tp: 8, pp: 4, dp: 4', 64)], ROCE),
    'moe': (zone(4, 4), [training(EXPERTS, 'tp: 1, pp: 1, ep: 16, dp: 64', 256)], ROCE),
    'ring': (zone(4, 4), [collective('all_reduce', '1 GB', 'ring')], ROCE),
    'tree': (zone(4, 4), [collective('all_reduce', '1 GB', 'tree')], ROCE),
    'all-to-all': (zone(4, 4), [collective('all_to_all', '1 GB', 'auto')], 'nscc'),
    'two-jobs': (zone(4, 4), [
        '{name: job, collective: all_reduce, bytes: 1 GB, gpus: 32, algorithm: ring}',
        '{name: other, collective: all_gather, bytes: 4 GB, gpus: 32}'], ROCE),
}


def run(row, share):
    fabric, jobs, transport = ROWS[row]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'row.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'name: {row}\nfabric: {fabric}\njobs: [{", ".join(jobs)}]\n'
                       f'engine: {{name: packet, estimate: {share}}}\ntransport: {transport}\n'
                       'seed: 1\n')
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run([WEFT, 'run', path, '--json', '--quiet', '-o', os.path.join(folder, 'out')],
                              capture_output=True, text=True, check=False)
        cpu_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode != 0:
        sys.exit(f'estimates.py: {row}: {done.stderr}')
    variant = next(iter(json.loads(done.stdout)['variants'].values()))
    return variant['jobs']['job']['time_s']['mean'], variant.get('estimate', {}), cpu_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('rows', nargs='*', metavar='ROW', help=', '.join(ROWS))
    parser.add_argument('--share', type=float, default=0.05)
    arguments = parser.parse_args()
    rows = arguments.rows or list(ROWS)
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f'no row {unknown[0]}; there are {", ".join(ROWS)}')
    print(f'{"row":12} {"whole s":>10} {"estimate s":>10} {"off %":>7} {"spread %":>8} '
          f'{"CPU s":>7} {"CPU s":>7} {"faster":>7}')
    for row in rows:
        whole_s, _, whole_cpu = run(row, 1)
        part_s, estimate, part_cpu = run(row, arguments.share)
        print(f'{row:12} {whole_s:10.5f} {part_s:10.5f} {100 * (part_s / whole_s - 1):7.2f} '
              f'{100 * estimate["spread"]:8.2f} {whole_cpu:7.1f} {part_cpu:7.2f} '
              f'{whole_cpu / part_cpu:7.1f}', flush=True)


if __name__ == '__main__':
    main()
