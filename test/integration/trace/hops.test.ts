import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { isStatus } from '#api/machinery/status'
import { apply, type TraceDeps, traceApplied, tracePod } from '#cli/hops/podTrace'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import { startCluster, type TestCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { hopNames, type PodTrace } from '#trace/hops'
import { TraceClock } from '#trace/traceClock'

const template = { spec: { containers: [{ name: 'c', image: 'busybox' }] } }
const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, ...template })
const deployment = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: { selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, ...template } },
})

describe('the hops of a pod', () => {
  let cluster: TestCluster
  let transport: HttpTransport
  let deps: TraceDeps
  const handshake = { ms: 0, result: '' }

  before(async () => {
    cluster = await startCluster({ clock: 'real' })
    const { url, ca, token } = await cluster.listen()
    const onHandshake = (ms: number, result: string) => Object.assign(handshake, { ms, result })
    transport = createHttpTransport({ server: url, tls: { ca, onHandshake }, bearerToken: token, clock: realClock })
    deps = { transport, clock: realClock, namespace: 'default', timeoutMs: 60_000 }
  })

  after(async () => {
    await transport.close()
    await cluster.close()
  })

  async function traced(object: object): Promise<PodTrace> {
    const time = new TraceClock(realClock)
    const validation = { atMs: time.now(), durationMs: 0, decision: 'valid' }
    const applied = await apply(deps, object as never)
    return traceApplied(deps, applied, { validation, tls: { atMs: validation.atMs, durationMs: handshake.ms, decision: handshake.result } })
  }

  const inOrder = ({ hops, totalMs, startMs, endMs }: PodTrace) => {
    assert.deepEqual(
      hops.map(({ name }) => name),
      hopNames,
    )
    for (const [at, hop] of hops.entries()) assert.ok(at === 0 || hop.atMs >= (hops[at - 1]?.atMs ?? 0), hop.name)
    const sum = hops.reduce((ms, { durationMs, gapMs }) => ms + durationMs + gapMs, 0)
    assert.ok(Math.abs(sum - totalMs) < 0.01 && Math.abs(endMs - startMs - totalMs) < 0.01, `${sum} ${totalMs}`)
  }

  test('ARC-07 the twelve hops of an applied pod are measured, in order, and their sum is the whole time', async () => {
    const found = await traced(pod('web'))
    inOrder(found)
    assert.equal(found.node, 'n1')
    assert.deepEqual(
      found.hops.filter(({ source }) => source !== 'measured').map(({ name, decision }) => [name, decision]),
      [['controllers', 'no controller: the pod has no owner']],
    )
    assert.match(handshake.result, /^TLSv1/)
    assert.match(found.hops.find(({ name }) => name === 'scheduler')?.decision ?? '', /^chose n1: 1 of 1 nodes fit/)
    assert.match(found.hops.find(({ name }) => name === 'runtime')?.decision ?? '', /RunPodSandbox.*CreateContainer, StartContainer/)
    assert.ok(found.hops.slice(2, 8).every(({ durationMs, decision }) => durationMs >= 0 && decision !== ''))
  })

  test('LRN-05 the pod of an applied Deployment shows the reconciles of its controllers, with their waits', async () => {
    const found = await traced(deployment('shop'))
    inOrder(found)
    assert.match(found.hops.find(({ name }) => name === 'controllers')?.decision ?? '', /^deployment.*replicaset.*reconciles$/)
    const components = new Set(found.events.map(({ component, what }) => `${component} ${what}`))
    for (const wanted of ['kube-scheduler attempt', 'kube-scheduler bind', 'kubelet sync (create)', 'runtime StartContainer'])
      assert.ok(components.has(wanted), wanted)
  })

  test('LRN-05 the wait for the pod of a Deployment lists the pods once and reads the owners of each pod once', async () => {
    const paths: string[] = []
    const object = deployment('counted')
    const request: HttpTransport['request'] = (call, signal) => {
      paths.push(`${call.method} ${call.path.replace(/-[^/]*$/, '')}`)
      return transport.request(call, signal)
    }
    await cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'counted' } } })
    const counting = { ...deps, transport: { ...transport, request }, namespace: 'counted' }
    const applied = await apply(counting, { ...object, metadata: { ...object.metadata, namespace: 'counted' } } as never)
    const now = { atMs: 0, durationMs: 0, decision: '' }
    await traceApplied(counting, applied, { validation: now })
    // The gathering reads the owners once more.
    const count = (path: string) => paths.filter((one) => one === path).length
    assert.equal(count('GET /api/v1/namespaces/counted/pods'), 1)
    assert.equal(count('GET /apis/apps/v1/namespaces/counted/replicasets/counted'), 2)
  })

  test('LRN-01 an apply takes fields of another manager over only with forceConflicts', async () => {
    await cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: pod('shared') })
    const changed = { ...pod('shared'), spec: { containers: [{ name: 'c', image: 'other' }] } }
    await assert.rejects(apply(deps, changed as never), (error: unknown) => isStatus(error, 'Conflict'))
    const { object } = await apply({ ...deps, forceConflicts: true }, changed as never)
    assert.equal((object as Pod).spec.containers[0]?.image, 'other')
  })

  test('LRN-01 a pod without a record shows the timestamps of its status', async () => {
    await cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: pod('quiet') })
    const found = await tracePod(deps, 'quiet')
    inOrder(found)
    assert.deepEqual(
      found.hops.filter(({ source }) => source === 'pod').map(({ name }) => name),
      ['storage', 'scheduler', 'kubelet', 'runtime'],
    )
  })
})
