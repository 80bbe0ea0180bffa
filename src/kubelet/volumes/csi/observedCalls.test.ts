/** Which calls to a driver are counted, and which are recorded, with the pod that they are for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { GrpcError } from '#grpc/grpcError'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { createCallLog } from '../../core/callLog.ts'
import { observedCalls } from './observedCalls.ts'

function observed(answer: () => Promise<unknown>) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const metrics = createRecordedMetrics()
  const calls = createCallLog(clock)
  const node = { call: answer as never }
  return { metrics, calls, node: observedCalls({ clock, metrics, calls })('d.example.com', node) }
}

const series = (method: string, code: string) =>
  `csi_operations_seconds{driver_name="d.example.com",grpc_status_code="${code}",method_name="/csi.v1.Node/${method}",migrated="false"}`

test('KUB-17 csi_operations_seconds counts each call by driver, method and code in Go’s words', async () => {
  let failure: Error | undefined
  const { node, metrics } = observed(async () => {
    if (failure) throw failure
    return {}
  })
  await node.call('NodeGetCapabilities', {}, 1)
  failure = new GrpcError('NOT_FOUND', 'no')
  await assert.rejects(node.call('NodeStageVolume', {}, 1))
  failure = new Error('the answer cannot be decoded')
  await assert.rejects(node.call('NodeStageVolume', {}, 1))
  assert.deepEqual(
    [...metrics.values.keys()],
    [series('NodeGetCapabilities', 'OK'), series('NodeStageVolume', 'NotFound'), series('NodeStageVolume', 'unknown-non-grpc')],
  )
})

test('LRN-07 calls about a volume are recorded with the pod in whose directory it is published; statistics and questions are not', async () => {
  const { node, calls } = observed(async () => ({}))
  await calls.record({ api: 'CRI', method: 'RunPodSandbox', pod: 'd/web', podUid: 'u-1', request: {} }, async () => ({}))
  await node.call('NodeGetCapabilities', {}, 1)
  await node.call('NodeGetVolumeStats', { volumeId: 'v', volumePath: '/pods/u-1/x' }, 1)
  const directory = '/var/lib/kubelet'
  await node.call('NodePublishVolume', { volumeId: 'v', targetPath: `${directory}/pods/u-1/volumes/kubernetes.io~csi/pv/mount` }, 1)
  await node.call('NodePublishVolume', { volumeId: 'b', targetPath: `${directory}/plugins/kubernetes.io/csi/volumeDevices/publish/pv/u-1` }, 1)
  assert.deepEqual(
    calls.find({}).map(({ method, pod, volume }) => [method, pod, volume]),
    [
      ['RunPodSandbox', 'd/web', undefined],
      ['NodePublishVolume', 'd/web', 'v'],
      ['NodePublishVolume', 'd/web', 'b'],
    ],
  )
})
