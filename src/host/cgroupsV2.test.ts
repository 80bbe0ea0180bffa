/** Cgroup v2 on recorded trees: files and formats as in the kernel's Documentation/admin-guide/cgroup-v2.rst. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { cpuSharesToWeight, createCgroupsV2 } from './cgroupsV2.ts'
import { detectCgroupUsage } from './cgroupUsage.ts'
import { detectCgroups } from './detectCgroups.ts'

const controllers = 'cpuset cpu io memory hugetlb pids rdma misc\n'
const group = {
  'cgroup.controllers': 'cpuset cpu io memory hugetlb pids\n',
  'cgroup.procs': '4711\n4712\n',
  'cpu.max': '150000 100000\n',
  'cpu.weight': '39\n',
  'cpu.stat':
    'usage_usec 9000000\nuser_usec 6000000\nsystem_usec 3000000\nnr_periods 40\nnr_throttled 7\nthrottled_usec 250000\nnr_bursts 2\nburst_usec 1500\n',
  'cpu.pressure': 'some avg10=1.50 avg60=0.75 avg300=0.10 total=123456\nfull avg10=0.50 avg60=0.25 avg300=0.05 total=23456\n',
  'io.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
  'io.stat': '8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n',
  'memory.current': '10485760\n',
  'memory.peak': '20971520\n',
  'memory.max': '67108864\n',
  'memory.low': '1048576\n',
  'memory.swap.current': '4096\n',
  'memory.swap.max': 'max\n',
  'memory.events': 'low 0\nhigh 3\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n',
  'memory.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=8\n',
  'memory.stat':
    'anon 4194304\nfile 5242880\nkernel 1048576\nfile_mapped 65536\ninactive_file 2097152\nactive_file 3145728\npgfault 100\npgmajfault 4\nshmem 0\nslab 524288\n',
  'pids.current': '2\n',
  'pids.max': '100\n',
}

async function recorded(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'cgroup2-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), text)
  }
  return root
}

const below = (path: string, files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${path}/${name}`, text]))

for (const [shares, weight] of [
  [2, 1],
  [3, 1],
  [102, 4],
  [1024, 39],
  [2048, 79],
  [262_144, 10_000],
] as const)
  test(`KUB-14 ${shares} shares of CPU weigh ${weight}`, () => assert.equal(cpuSharesToWeight(shares), weight))

for (const { says, limits, want } of [
  { says: 'a quota with its period', limits: { cpuQuotaUs: 150_000, cpuPeriodUs: 50_000 }, want: { 'cpu.max': '150000 50000' } },
  { says: 'no quota', limits: { cpuQuotaUs: -1 }, want: { 'cpu.max': 'max 100000' } },
  { says: 'shares as a weight', limits: { cpuShares: 1024 }, want: { 'cpu.weight': '39' } },
  {
    says: 'memory that is limited, throttled and protected',
    limits: { memoryLimitBytes: 4096, memoryHighBytes: 2048, memoryLowBytes: 1024, memoryMinBytes: 512 },
    want: { 'memory.max': '4096', 'memory.high': '2048', 'memory.low': '1024', 'memory.min': '512' },
  },
  {
    says: 'memory without limits',
    limits: { memoryLimitBytes: -1, memoryHighBytes: -1, memoryMinBytes: 0 },
    want: { 'memory.max': 'max', 'memory.high': 'max', 'memory.min': '0' },
  },
  { says: 'processes', limits: { pidsLimit: 100 }, want: { 'pids.max': '100' } },
  { says: 'any number of processes', limits: { pidsLimit: -1 }, want: { 'pids.max': 'max' } },
  { says: 'huge pages of the sizes that can be limited', limits: { hugepageLimits: { '2MB': 2 ** 21, '1GB': 0 } }, want: { 'hugetlb.2MB.max': '2097152' } },
])
  test(`KUB-14 a v2 group is limited in ${says}`, async (t) => {
    const root = await recorded(t, { 'cgroup.controllers': controllers, 'pod/hugetlb.2MB.max': 'max\n' })
    await createCgroupsV2(root).ensure('/pod', limits)
    const files = ['cpu.max', 'cpu.weight', 'memory.max', 'memory.high', 'memory.low', 'memory.min', 'pids.max', 'hugetlb.2MB.max', 'hugetlb.1GB.max']
    const written = files.filter((name) => existsSync(join(root, 'pod', name))).map((name) => [name, readFileSync(join(root, 'pod', name), 'utf8')])
    assert.deepEqual(Object.fromEntries(written.filter(([, text]) => text !== 'max\n')), want)
  })

test('KUB-14 every ancestor delegates the controllers that it has and the kubelet uses', async (t) => {
  const root = await recorded(t, { 'cgroup.controllers': controllers, 'kubepods/cgroup.controllers': 'cpu memory\n', 'kubepods/cgroup.procs': '' })
  await createCgroupsV2(root).ensure('/kubepods/burstable')
  const delegated = (path: string) => readFileSync(join(root, path, 'cgroup.subtree_control'), 'utf8')
  assert.deepEqual([delegated(''), delegated('kubepods')], ['+cpuset +cpu +io +memory +hugetlb +pids', '+cpu +memory'])
  assert.ok(existsSync(join(root, 'kubepods/burstable')))
})

test('KUB-14 a group is made and limited although its parent refuses to delegate', async (t) => {
  const root = await recorded(t, { 'cgroup.controllers': controllers })
  await symlink('/dev/full', join(root, 'cgroup.subtree_control'))
  await createCgroupsV2(root).ensure('/pod', { pidsLimit: 3 })
  assert.equal(readFileSync(join(root, 'pod/pids.max'), 'utf8'), '3')
})

test('KUB-14 a v2 group that lacks a controller which the kernel has does not count as there', async (t) => {
  const root = await recorded(t, {
    'cgroup.controllers': controllers,
    ...below('whole', group),
    ...below('part', { ...group, 'cgroup.controllers': 'cpu memory\n' }),
  })
  const cgroups = createCgroupsV2(root)
  assert.deepEqual(await Promise.all(['/whole', '/part', '/none'].map((path) => cgroups.exists(path))), [true, false, false])
})

test('KUB-14 OBS-10 a v2 group’s statistics: files’ inactive pages are no working set, the root has no memory.current', async (t) => {
  const { 'memory.current': _, ...ofRoot } = group
  const root = await recorded(t, { ...ofRoot, ...below('pod', group), ...below('pod/inner', { 'cgroup.procs': '4713\n' }) })
  const cgroups = createCgroupsV2(root)
  const stats = {
    cpuUsageNanoSeconds: 9e9,
    memoryUsageBytes: 10_485_760,
    memoryWorkingSetBytes: 8_388_608,
    memoryRssBytes: 4_194_304,
    pageFaults: 100,
    majorPageFaults: 4,
    processes: 2,
  }
  assert.deepEqual(await cgroups.stats('/pod'), stats)
  assert.deepEqual(await cgroups.stats('/'), { ...stats, memoryUsageBytes: 9_437_184, memoryWorkingSetBytes: 7_340_032 })
  assert.deepEqual([await cgroups.processes('/pod'), await cgroups.children('/pod')], [[4711, 4712, 4713], ['inner']])
})

test('KUB-14 swap can be limited when this process’s own v2 group has a limit of swap', async (t) => {
  const root = await recorded(t, { ...below('system.slice/kubelet.service', group), mountinfo: '', own: '0::/system.slice/kubelet.service\n', other: '0::/\n' })
  await writeFile(join(root, 'mountinfo'), `1 0 0:1 / ${root} rw - cgroup2 cgroup2 rw\n`)
  const detected = (own: string) => detectCgroups(root, join(root, 'mountinfo'), join(root, own))
  assert.deepEqual([(await detected('own')).version, (await detected('own')).hasSwapLimits, (await detected('other')).hasSwapLimits], [2, true, false])
})

test('OBS-10 usage of a v2 group has throttling, stalls, limits and devices', async (t) => {
  const root = await recorded(t, below('pod', group))
  await writeFile(join(root, 'mountinfo'), `1 0 0:1 / ${root} rw - cgroup2 cgroup2 rw\n`)
  const usage = (await detectCgroupUsage(root, join(root, 'mountinfo'))).usage('/pod') ?? assert.fail('no usage')
  const { cpuNs, periods, throttledPeriods, throttledNs, burstPeriods, burstNs, shares, quotaUs, periodUs, oomKills, maxProcesses } = usage
  assert.deepEqual([cpuNs, periods, throttledPeriods, throttledNs, burstPeriods, burstNs], [9e9, 40, 7, 25e7, 2, 15e5])
  assert.deepEqual([shares, quotaUs, periodUs, oomKills, maxProcesses], [998, 150_000, 100_000, 1, 100])
  assert.deepEqual([usage.memory.limitBytes, usage.memory.swapLimitBytes, usage.memory.failures, usage.memory.maxUsageBytes], [67_108_864, 0, 5, 20_971_520])
  assert.deepEqual(usage.pressure?.cpu, {
    some: { totalUs: 123_456, avg10: 1.5, avg60: 0.75, avg300: 0.1 },
    full: { totalUs: 23_456, avg10: 0.5, avg60: 0.25, avg300: 0.05 },
  })
  assert.deepEqual([usage.pressure?.memory.full.totalUs, usage.devices.length], [8, 1])
})
