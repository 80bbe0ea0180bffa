import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseInterfaces, readerOfV1, readerOfV2 } from './cgroupUsage.ts'

async function withFiles(files: Readonly<Record<string, string>>, run: (directory: string) => void): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-cgroup-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(join(directory, name, '..'), { recursive: true })
      await writeFile(join(directory, name), text)
    }
    run(directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

test('OBS-10 usage of a v1 group, with everything below it', () =>
  withFiles(
    {
      'cpuacct/g/cpuacct.usage': '5000000000\n',
      'cpuacct/g/cpuacct.stat': 'user 300\nsystem 150\n',
      'cpu/g/cpu.stat': 'nr_periods 10\nnr_throttled 4\nthrottled_time 2000\n',
      'cpu/g/cpu.cfs_quota_us': '-1\n',
      'memory/g/memory.stat': 'hierarchical_memory_limit 4096\ntotal_rss 100\ntotal_cache 50\ntotal_inactive_file 30\ntotal_pgfault 7\n',
      'memory/g/memory.usage_in_bytes': '200\n',
      'memory/g/memory.limit_in_bytes': '9223372036854771712\n',
      'memory/g/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
      'memory/g/cgroup.procs': '42\n43\n',
      'pids/g/pids.current': '2\n',
      'pids/g/pids.max': 'max\n',
      'blkio/g/blkio.throttle.io_service_bytes_recursive': '8:0 Read 10\n8:0 Write 20\n8:16 Read 5\nTotal 35\n',
      'blkio/g/blkio.throttle.io_serviced_recursive': '8:0 Read 1\n8:0 Write 2\nTotal 3\n',
    },
    (directory) => {
      const reader = readerOfV1((controller) => join(directory, controller))
      const usage = reader.usage('/g')
      assert.deepEqual([usage?.cpuNs, usage?.cpuUserNs, usage?.cpuSystemNs, usage?.throttledPeriods, usage?.quotaUs], [5e9, 3e9, 1.5e9, 4, 0])
      assert.deepEqual([usage?.memory.workingSetBytes, usage?.memory.rssBytes, usage?.memory.limitBytes, usage?.memory.pageFaults], [170, 100, 0, 7])
      assert.deepEqual([usage?.processes, usage?.maxProcesses, usage?.oomKills], [2, 0, 2])
      assert.deepEqual(usage?.devices, [
        { major: 8, minor: 0, bytes: { Read: 10, Write: 20 }, requests: { Read: 1, Write: 2 } },
        { major: 8, minor: 16, bytes: { Read: 5 }, requests: {} },
      ])
      assert.equal(reader.process('/g'), 42)
      assert.equal(reader.usage('/none'), undefined)
    },
  ))

test('OBS-10 usage of a v2 group, with pressure', () =>
  withFiles(
    {
      'g/cpu.stat': 'usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 1\nnr_throttled 1\nthrottled_usec 9\n',
      'g/cpu.max': '20000 100000\n',
      'g/cpu.weight': '39\n',
      'g/memory.stat': 'anon 100\nfile 60\ninactive_file 10\n',
      'g/memory.current': '180\n',
      'g/memory.max': '1000\n',
      'g/memory.events': 'max 3\noom_kill 1\n',
      'g/io.stat': '8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=5 wbytes=0\n',
      'g/cpu.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=1.50 avg60=0.25 avg300=0.00 total=5\n',
    },
    (directory) => {
      const usage = readerOfV2(directory).usage('/g')
      assert.deepEqual([usage?.cpuNs, usage?.quotaUs, usage?.periodUs, usage?.shares, usage?.throttledNs], [5e9, 20_000, 100_000, 998, 9000])
      assert.deepEqual([usage?.memory.workingSetBytes, usage?.memory.limitBytes, usage?.memory.failures, usage?.oomKills], [170, 1000, 3, 1])
      assert.deepEqual(usage?.devices, [
        { major: 8, minor: 0, bytes: { Read: 10, Write: 20 }, requests: { Read: 1 } },
        { major: 8, minor: 16, bytes: { Read: 5, Write: 0 }, requests: {} },
      ])
      assert.deepEqual(usage?.pressure?.cpu, {
        some: { totalUs: 77, avg10: 0, avg60: 0, avg300: 0 },
        full: { totalUs: 5, avg10: 1.5, avg60: 0.25, avg300: 0 },
      })
    },
  ))

test('OBS-10 interfaces of a network, without its loopback', () => {
  const text = 'Inter-|   Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 2 3 4 0 0 0 0 50 6 7 8 0 0 0 0\n'
  assert.deepEqual(parseInterfaces(text), [
    { name: 'eth0', receivedBytes: 10, receivedPackets: 2, receiveErrors: 3, receiveDropped: 4, sentBytes: 50, sentPackets: 6, sendErrors: 7, sendDropped: 8 },
  ])
})
