import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createCgroupsV1 } from './cgroupsV1.ts'
import { createCgroupsV2 } from './cgroupsV2.ts'
import { detectCgroups } from './detectCgroups.ts'

async function inTemporary<T>(run: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'cgroups-'))
  try {
    return await run(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

test('KUB-14 v1 writes each limit into its own hierarchy and inherits cpusets downwards', () =>
  inTemporary(async (root) => {
    const hierarchies = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids'].map((name) => ({ directory: join(root, name), controllers: ['rw', name] }))
    await mkdir(join(root, 'cpuset'), { recursive: true })
    await writeFile(join(root, 'cpuset/cpuset.cpus'), '0-1\n')
    await writeFile(join(root, 'cpuset/cpuset.mems'), '0\n')
    const cgroups = createCgroupsV1(hierarchies)
    await cgroups.ensure('/kubepods/burstable/podx', { cpuShares: 204, cpuQuotaUs: 20_000, cpuPeriodUs: 100_000, memoryLimitBytes: 1 << 20, pidsLimit: -1 })
    const read = (name: string) => readFile(join(root, name), 'utf8')
    assert.deepEqual(
      await Promise.all(
        [
          'cpu/kubepods/burstable/podx/cpu.shares',
          'cpu/kubepods/burstable/podx/cpu.cfs_quota_us',
          'memory/kubepods/burstable/podx/memory.limit_in_bytes',
          'pids/kubepods/burstable/podx/pids.max',
          'cpuset/kubepods/cpuset.cpus',
          'cpuset/kubepods/burstable/podx/cpuset.mems',
        ].map(read),
      ),
      ['204', '20000', '1048576', 'max', '0-1', '0'],
    )
    assert.deepEqual(await cgroups.children('/kubepods'), ['burstable'])
  }))

test('v1 statistics take the working set as usage less inactive file cache', () =>
  inTemporary(async (root) => {
    const hierarchies = ['cpuacct', 'memory', 'pids'].map((name) => ({ directory: join(root, name), controllers: [name] }))
    const cgroups = createCgroupsV1(hierarchies)
    assert.equal(await cgroups.stats('/a'), undefined)
    await cgroups.ensure('/a')
    await writeFile(join(root, 'memory/a/memory.stat'), 'total_inactive_file 100\ntotal_rss 50\ntotal_pgfault 7\ntotal_pgmajfault 1\n')
    await writeFile(join(root, 'memory/a/memory.usage_in_bytes'), '300\n')
    await writeFile(join(root, 'cpuacct/a/cpuacct.usage'), '12345\n')
    await writeFile(join(root, 'pids/a/pids.current'), '3\n')
    assert.deepEqual(await cgroups.stats('/a'), {
      cpuUsageNanoSeconds: 12_345,
      memoryUsageBytes: 300,
      memoryWorkingSetBytes: 200,
      memoryRssBytes: 50,
      pageFaults: 7,
      majorPageFaults: 1,
      processes: 3,
    })
  }))

test('v2 delegates controllers from the top and joins quota and period', () =>
  inTemporary(async (root) => {
    await writeFile(join(root, 'cgroup.controllers'), 'cpu memory pids\n')
    const cgroups = createCgroupsV2(root)
    await cgroups.ensure('/kubepods', { cpuShares: 1024, cpuQuotaUs: -1, memoryLimitBytes: 4096 })
    const read = (name: string) => readFile(join(root, name), 'utf8')
    assert.deepEqual(await Promise.all(['cgroup.subtree_control', 'kubepods/cpu.weight', 'kubepods/cpu.max', 'kubepods/memory.max'].map(read)), [
      '+cpu +memory +pids',
      '39',
      'max 100000',
      '4096',
    ])
  }))

test('the driver follows what is mounted', () =>
  inTemporary(async (root) => {
    const info = join(root, 'mountinfo')
    await writeFile(info, '1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n')
    assert.equal((await detectCgroups('/sys/fs/cgroup', info)).version, 2)
    await writeFile(info, '1 0 0:1 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n2 1 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n')
    assert.equal((await detectCgroups('/sys/fs/cgroup', info)).version, 1)
    await writeFile(info, '')
    await assert.rejects(detectCgroups('/sys/fs/cgroup', info), /no cgroup hierarchy/)
  }))
