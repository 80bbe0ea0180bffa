import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { createVolumeMetrics } from './volumeMetrics.ts'

test('OBS-13 volumes are counted by plugin as needed and as mounted, down to zero', () => {
  const recorded = createRecordedMetrics()
  const metrics = createVolumeMetrics({ metrics: recorded, clock: new VirtualClock() })
  const volumes = (...plugins: string[]) => new Map(plugins.map((plugin, at) => [`v${at}`, { plugin }]))
  const value = (plugin: string, state: string) => recorded.values.get(`volume_manager_total_volumes{plugin_name="${plugin}",state="${state}_state_of_world"}`)
  metrics.volumes([volumes('empty-dir'), volumes('empty-dir')], [volumes('empty-dir', 'csi'), volumes('empty-dir')])
  assert.deepEqual([value('empty-dir', 'actual'), value('csi', 'actual'), value('empty-dir', 'desired'), value('csi', 'desired')], [2, undefined, 2, 1])
  metrics.volumes([], [])
  assert.deepEqual([value('empty-dir', 'actual'), value('empty-dir', 'desired'), value('csi', 'desired')], [0, 0, 0])
})
