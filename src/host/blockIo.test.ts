import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createDisks, devicesOfV1, devicesOfV2 } from './blockIo.ts'

test('OBS-10 cgroup v1 and v2 report the same reads and writes per device', () => {
  const v1 = devicesOfV1('8:0 Read 10\n8:0 Write 20\n8:0 Total 30\nTotal 30\n', '8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n')
  assert.deepEqual(v1, [{ major: 8, minor: 0, bytes: { Read: 10, Write: 20, Total: 30 }, requests: { Read: 1, Write: 2, Total: 3 } }])
  const v2 = devicesOfV2('8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=5 dios=1 cost.usage=7\n')
  assert.deepEqual(v2, [{ major: 8, minor: 0, bytes: { Read: 10, Write: 20, Discard: 5 }, requests: { Read: 1, Write: 2, Discard: 1 } }])
  assert.deepEqual([devicesOfV1('Total 0\n', 'Total 0\n'), devicesOfV2('')], [[], []])
})

test('OBS-10 each file system on a block device is reported once, with the counters of its device', async () => {
  const root = await mkdtemp(join(tmpdir(), 'skiff-disks-'))
  try {
    for (const directory of ['proc/self', 'sys/dev/block', 'dev/mapper', 'data']) await mkdir(join(root, directory), { recursive: true })
    await symlink('../../devices/virtual/block/dm-0', join(root, 'sys/dev/block/253:0'))
    await writeFile(join(root, 'dev/dm-0'), '')
    await symlink('../dm-0', join(root, 'dev/mapper/data'))
    const mounts = [
      '1 0 253:0 / /data rw - ext4 /dev/mapper/data rw',
      '2 1 253:0 /x /bound rw - ext4 /dev/mapper/data rw',
      '3 1 0:5 / /run rw - tmpfs tmpfs rw',
    ]
    await writeFile(join(root, 'proc/self/mountinfo'), `${mounts.join('\n')}\n`)
    await writeFile(join(root, 'proc/diskstats'), ' 253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n')
    const disks = createDisks(root)
    assert.deepEqual([disks.deviceName(253, 0), disks.deviceName(1, 1)], ['/dev/dm-0', ''])
    const [usage, ...more] = await disks.usages()
    assert.deepEqual(more, [])
    assert.ok(usage && usage.capacityBytes > 0 && usage.usedBytes <= usage.capacityBytes && usage.inodesFree <= usage.inodes)
    const { device, capacityBytes: _c, usedBytes: _u, inodes: _i, inodesFree: _f, ...activity } = usage
    assert.equal(device, '/dev/mapper/data')
    assert.deepEqual(activity, {
      reads: 1,
      readsMerged: 2,
      sectorsRead: 3,
      readMs: 4,
      writes: 5,
      writesMerged: 6,
      sectorsWritten: 7,
      writeMs: 8,
      ioInProgress: 9,
      ioMs: 10,
      weightedIoMs: 11,
    })
  } finally {
    await rm(root, { recursive: true })
  }
})
