/** A pod whose status is larger than the store takes: the kubelet leaves out details, so that the pod still starts and ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { pods } from '#client/builtIn'
import { defaultMaxLogBytes, MvccStore } from '#store/local/mvccStore'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'

const kibibyte = 1024
const namespace = 'default'

/** Runs a pod of 60 init containers to its end on a store with values of this size at most, and deletes it. */
async function endOf(maxValueBytes: number) {
  const nothing = async () => {}
  const store = new MvccStore(
    { append: nothing, forget: nothing, close: nothing },
    { clock: realClock, log: noLog, maxLogBytes: defaultMaxLogBytes, maxValueBytes },
  )
  const profile = { behave: () => ({ exitAfterMs: 1000 }) }
  const cluster = await startCluster({ store, profile })
  try {
    const container = { image: 'i', resources: { requests: { cpu: '1m' } } }
    const initContainers = Array.from({ length: 60 }, (_, index) => ({ ...container, name: `i${index}` }))
    const spec = { initContainers, containers: [{ ...container, name: 'c' }], restartPolicy: 'Never' }
    await cluster.client.of(pods).create({ metadata: { namespace, name: 'long' }, spec })
    const { status } = await cluster.until(async () => {
      const pod = await cluster.client.of(pods).get({ namespace, name: 'long' })
      return pod.status.phase === 'Succeeded' ? pod : undefined
    })
    await cluster.client.of(pods).delete({ namespace, name: 'long' })
    await cluster.until(async () => (await cluster.client.of(pods).list({ namespace })).items.length === 0)
    return { status, cuts: cluster.complaints.filter((text) => text.includes('Pod status is too large')).length }
  } finally {
    await cluster.close()
  }
}

const ended = ({ state }: Frozen<ContainerStatus>) => state?.terminated?.exitCode === 0 && state.terminated.reason === 'Completed'

test('KUB-12 a status that fits is reported whole', async () => {
  const { status, cuts } = await endOf(200 * kibibyte)
  assert.ok(status.initContainerStatuses?.every(({ containerID, volumeMounts }) => containerID && volumeMounts))
  assert.equal(cuts, 0)
})

test('KUB-12 a status that is too large keeps phase, conditions and the state of each container', async () => {
  const { status, cuts } = await endOf(45 * kibibyte)
  const { initContainerStatuses = [], containerStatuses = [], conditions = [] } = status
  assert.equal([...initContainerStatuses, ...containerStatuses].filter(ended).length, 61)
  assert.ok(conditions.some(({ type, reason }) => type === 'Ready' && reason === 'PodCompleted'))
  assert.equal(cuts, 3)
})

test('KUB-12 a pod whose specification leaves no room for the states of its containers still ends', async () => {
  const { status, cuts } = await endOf(36 * kibibyte)
  assert.equal(status.phase, 'Succeeded')
  assert.equal(status.initContainerStatuses, undefined)
  assert.equal(cuts, 4)
})
