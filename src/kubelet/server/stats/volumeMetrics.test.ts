import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prometheusText } from '#base/prometheusText'
import { volumeFamilies } from './volumeMetrics.ts'

test('KUB-17 OBS-10 /metrics reports each claimed volume once, under upstream’s metric names, and no other volumes', () => {
  const pvcRef = { name: 'data', namespace: 'shop' }
  const full = { name: 'v', pvcRef, capacityBytes: 100, availableBytes: 60, usedBytes: 40, inodes: 10, inodesFree: 7, inodesUsed: 3 }
  const families = volumeFamilies([
    full,
    { ...full, name: 'the same claim in another pod', usedBytes: 41 },
    { name: 'scratch', usedBytes: 5, inodesUsed: 1 },
    { name: 'w', pvcRef: { name: 'unmeasured', namespace: 'shop' }, usedBytes: 1, inodesUsed: 2 },
  ])
  const samples = prometheusText(families)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const data = '{namespace="shop",persistentvolumeclaim="data"}'
  const unmeasured = '{namespace="shop",persistentvolumeclaim="unmeasured"}'
  assert.deepEqual(samples, [
    `kubelet_volume_stats_available_bytes${data} 60`,
    `kubelet_volume_stats_capacity_bytes${data} 100`,
    `kubelet_volume_stats_inodes${data} 10`,
    `kubelet_volume_stats_inodes_free${data} 7`,
    `kubelet_volume_stats_inodes_used${data} 3`,
    `kubelet_volume_stats_inodes_used${unmeasured} 2`,
    `kubelet_volume_stats_used_bytes${data} 40`,
    `kubelet_volume_stats_used_bytes${unmeasured} 1`,
  ])
  assert.equal(prometheusText(volumeFamilies([])), '')
})
