/**
 * Claims that take an exponential search hold neither the event loop nor other pods: they are made over the wire, and an innocent Deployment gets its pods
 * while they are searched for.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertServesInnocent, createKilledCluster, type KilledCluster } from './poison/killedCluster.ts'

/** Of processor time of the main thread: see budget/longestTurn.ts. */
const maxTurnMs = 250
const driver = 'd.example.com'
const resource = '/apis/resource.k8s.io/v1'
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

async function createDevices(cluster: KilledCluster): Promise<void> {
  // No value of numa has twelve devices that fit all twelve requests, which takes long to find out: each request fits any but a few.
  const devices = list(64, (index) => ({ name: `g${index}`, attributes: { numa: { string: `${index % 5}` }, model: { string: `m${index % 11}` } } }))
  const spec = { driver, nodeName: 'n1', pool: { name: 'p', generation: 1, resourceSliceCount: 1 }, devices }
  assert.equal((await cluster.call('POST', `${resource}/resourceslices`, { metadata: { name: 's' }, spec })).status, 201)
  assert.equal((await cluster.call('POST', `${resource}/deviceclasses`, { metadata: { name: 'any' }, spec: {} })).status, 201)
}

function claim(name: string): object {
  const selectors = (index: number) => [
    { cel: { expression: `device.attributes["${driver}"].model != "m${index % 11}" || device.attributes["${driver}"].numa == "9"` } },
  ]
  const requests = list(12, (index) => ({ name: `r${index}`, exactly: { deviceClassName: 'any', selectors: selectors(index) } }))
  // Twelve devices of one numa that all differ in model: there are eleven models.
  const constraints = [{ matchAttribute: `${driver}/numa` }, { distinctAttribute: `${driver}/model` }]
  return { metadata: { name }, spec: { devices: { requests, constraints } } }
}

test('DRA-04 twenty pods with twelve requests under matchAttribute over 64 devices stop neither the loop nor others’ pods', { timeout: 240_000 }, async () => {
  const cluster = createKilledCluster()
  const inTenant = (path: string) => path.replace('*', 'namespaces/tenant')
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    await createDevices(cluster)
    await cluster.longestTurnMs()
    for (const index of list(20, (at) => at)) {
      const made = await cluster.call('POST', inTenant(`${resource}/*/resourceclaims`), claim(`c${index}`))
      assert.equal(made.status, 201, made.text)
      const spec = {
        containers: [{ name: 'c', image: 'i', resources: { claims: [{ name: 'x' }] } }],
        resourceClaims: [{ name: 'x', resourceClaimName: `c${index}` }],
      }
      const pod = await cluster.call('POST', inTenant('/api/v1/*/pods'), { metadata: { name: `p${index}` }, spec })
      assert.equal(pod.status, 201, pod.text)
    }
    const message = ({ json }: { json: { status?: { conditions?: { type: string; message?: string }[] } } }) =>
      json.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''
    const first = await cluster.until(inTenant('/api/v1/*/pods/p0'), (answer) => message(answer) !== '')
    assert.match(message(first), /still searching for devices of the resource claims/)
    await assertServesInnocent(cluster, 'web')
    // A search ends with upstream's error; the pods behind it wait for theirs.
    await cluster.until(inTenant('/api/v1/*/pods/p0'), (answer) => message(answer).includes('node n1: timed out trying to allocate devices'), 120_000)
    await assertServesInnocent(cluster, 'again')
    const turnMs = await cluster.longestTurnMs()
    assert.ok(turnMs < maxTurnMs, `a turn of the event loop took ${turnMs} ms`)
    await cluster.kill()
    await cluster.start()
    await assertServesInnocent(cluster, 'after')
  } finally {
    await cluster.close()
  }
})
