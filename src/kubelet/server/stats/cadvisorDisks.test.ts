import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prometheusText } from '#base/prometheusText'
import { diskFamilies, type GroupRow } from './cadvisorDisks.ts'
import { metricFamilies } from './labelledFamilies.ts'

const disk = { device: '/dev/vda', capacityBytes: 100, usedBytes: 40, inodes: 10, inodesFree: 7 }
const activity = { reads: 11, readsMerged: 12, sectorsRead: 13, readMs: 1400, writes: 15, writesMerged: 16, sectorsWritten: 17, writeMs: 1800 }
const usage = { ...disk, ...activity, ioInProgress: 2, ioMs: 2000, weightedIoMs: 2100 }
const io = { major: 254, minor: 0, bytes: { Read: 4096, Write: 8192 }, requests: { Read: 1, Write: 2 } }
const row = (id: string, isNode: boolean): GroupRow => ({ labels: { id, pod: '' }, usage: { atMs: 5, devices: [io] }, isNode })

test('KUB-17 OBS-10 /metrics/cadvisor reports reads and writes of cgroups by device, and the usage and operations of the node’s disks', () => {
  const deviceName = (major: number) => (major === 254 ? '/dev/vda' : '')
  const families = diskFamilies([row('/', true), row('/kubepods/pod1', false)], { usages: [usage], deviceName })
  const lines = prometheusText(metricFamilies(families))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const ofPod = lines.filter((line) => line.includes('pod1'))
  assert.deepEqual(ofPod, [
    'container_fs_reads_bytes_total{device="/dev/vda",id="/kubepods/pod1",pod=""} 4096 5',
    'container_fs_reads_total{device="/dev/vda",id="/kubepods/pod1",pod=""} 1 5',
    'container_fs_writes_bytes_total{device="/dev/vda",id="/kubepods/pod1",pod=""} 8192 5',
    'container_fs_writes_total{device="/dev/vda",id="/kubepods/pod1",pod=""} 2 5',
    'container_blkio_device_usage_total{device="/dev/vda",id="/kubepods/pod1",major="254",minor="0",operation="Read",pod=""} 4096 5',
    'container_blkio_device_usage_total{device="/dev/vda",id="/kubepods/pod1",major="254",minor="0",operation="Write",pod=""} 8192 5',
  ])
  const ofNode = Object.fromEntries(
    lines.filter((line) => line.startsWith('container_fs_') && line.includes('id="/",')).map((line) => [line.slice(13, line.indexOf('{')), line.split(' ')[1]]),
  )
  assert.deepEqual(ofNode, {
    inodes_free: '7',
    inodes_total: '10',
    io_current: '2',
    io_time_seconds_total: '2',
    io_time_weighted_seconds_total: '2.1',
    limit_bytes: '100',
    read_seconds_total: '1.4',
    reads_bytes_total: '4096',
    reads_merged_total: '12',
    reads_total: '11',
    sector_reads_total: '13',
    sector_writes_total: '17',
    usage_bytes: '40',
    write_seconds_total: '1.8',
    writes_bytes_total: '8192',
    writes_merged_total: '16',
    writes_total: '15',
  })
})
