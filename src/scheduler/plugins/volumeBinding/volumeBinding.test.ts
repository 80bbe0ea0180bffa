/** A volume reserved for one pod is not given to the next, until the reservation is released or the API has a newer version. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { VirtualClock } from '#base/virtualClock'
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#client/builtIn'
import { nodeOf, podOf, type SchedulerFixture, schedulerFixture } from '#testing/schedulerFixture'
import { podInfo } from '../../framework/podInfo.ts'
import { until } from './bindVolumes.ts'

const storageClass = (provisioner: string): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'late' },
  provisioner,
  volumeBindingMode: 'WaitForFirstConsumer',
})
const claim = (name: string): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default', uid: name },
  spec: { storageClassName: 'late', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  status: { phase: 'Pending' },
})
const volume = (name: string, resourceVersion = '1'): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, resourceVersion },
  spec: { storageClassName: 'late', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
  status: { phase: 'Available' },
})
const user = (name: string, claimName: string): Pod => podOf(name, { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] })

function world(provisioner: string, ...volumes: PersistentVolume[]): SchedulerFixture {
  const fixture = schedulerFixture({ nodes: ['a', 'b'].map((name) => nodeOf({ name })) })
  fixture.put(storageClasses, storageClass(provisioner))
  fixture.put(persistentVolumeClaims, claim('one'), claim('two'))
  fixture.put(persistentVolumes, ...volumes)
  return fixture
}

/** Decides and reserves. @returns the node, and how to take the reservation back */
function reserve(fixture: SchedulerFixture, pod: Pod): { readonly on: string; readonly takeBack: () => void } {
  const result = fixture.schedule(pod)
  assert.ok('placed' in result, `${pod.metadata.name} fits nowhere`)
  const { state, node } = result.placed
  for (const plugin of fixture.profile.points.reserve) assert.equal(plugin.reserve(state, podInfo(pod), node.name), undefined)
  return {
    on: node.name,
    takeBack: () => {
      for (const plugin of fixture.profile.points.reserve) plugin.unreserve?.(state, podInfo(pod), node.name)
    },
  }
}

const nothingToBind = { message: "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind." }

test('SCH-09 a volume that is promised to one claim is not given to another, until the promise is taken back', () => {
  const fixture = world('kubernetes.io/no-provisioner', volume('disk'))
  const first = reserve(fixture, user('p', 'one'))
  assert.deepEqual(fixture.decide(user('q', 'two')), nothingToBind)
  assert.ok('on' in fixture.decide(user('r', 'one')), 'it is still meant for its own claim')
  first.takeBack()
  assert.ok('on' in fixture.decide(user('q', 'two')))
})

test('SCH-09 a newer version of the volume replaces the reservation', () => {
  const fixture = world('kubernetes.io/no-provisioner', volume('disk'))
  reserve(fixture, user('p', 'one'))
  fixture.put(persistentVolumes, volume('disk', '2'))
  assert.ok('on' in fixture.decide(user('q', 'two')))
  fixture.put(persistentVolumes, { ...volume('disk', '3'), status: { phase: 'Released' } })
  assert.deepEqual(fixture.decide(user('q', 'two')), nothingToBind)
})

test('SCH-09 two claims take two volumes, and the third pod none', () => {
  const fixture = world('kubernetes.io/no-provisioner', volume('disk'), volume('other'))
  reserve(fixture, user('p', 'one'))
  reserve(fixture, user('q', 'two'))
  fixture.put(persistentVolumeClaims, claim('three'))
  assert.deepEqual(fixture.decide(user('r', 'three')), nothingToBind)
})

test('SCH-09 a claim whose volume will be made on a node keeps other pods with it there', () => {
  const fixture = world('csi.example.com')
  const { on, takeBack } = reserve(fixture, user('p', 'one'))
  for (let i = 0; i < 20; i++) assert.deepEqual(fixture.decide(user(`q${i}`, 'one')), { on })
  takeBack()
  const chosen = new Set<unknown>()
  for (let i = 0; i < 100 && chosen.size < 2; i++) chosen.add(JSON.stringify(fixture.decide(user(`r${i}`, 'one'))))
  assert.equal(chosen.size, 2)
})

test('SCH-09 waiting ends when the condition holds, when it never will, in time, or with the scheduler', async () => {
  const clock = new VirtualClock()
  const wakers = new Set<() => void>()
  const stop = new AbortController()
  const wake = () => {
    for (const one of [...wakers]) one()
  }
  let bound = false
  const good = until(() => bound, wakers, clock, 600_000, stop.signal)
  const impossible = until(() => (bound ? assert.fail('never') : false), wakers, clock, 600_000, stop.signal)
  bound = true
  const failed = assert.rejects(impossible, /never/)
  wake()
  await Promise.all([good, failed])
  const late = assert.rejects(
    until(() => false, wakers, clock, 600_000, stop.signal),
    /context deadline exceeded/,
  )
  await clock.advance(600_000)
  await late
  const stopped = assert.rejects(
    until(() => false, wakers, clock, 600_000, stop.signal),
    /stopped/,
  )
  stop.abort(new Error('stopped'))
  await stopped
  assert.equal(wakers.size, 0)
})
