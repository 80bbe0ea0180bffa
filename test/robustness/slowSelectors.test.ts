/**
 * Claims whose selectors are expensive to evaluate hold neither the event loop nor other clients: they are made over the wire, and another client reads and
 * gets its pods meanwhile.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertServesInnocent, createKilledCluster, type KilledCluster } from './poison/killedCluster.ts'

/** The bound of every turn of a server's event loop. */
const maxTurnMs = 250
const driver = 'd.example.com'
const resource = '/apis/resource.k8s.io/v1'
const claims = `${resource}/namespaces/tenant/resourceclaims`
const pods = '/api/v1/namespaces/tenant/pods'
const devicesPerSlice = 128
const selectorsPerRequest = 32
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

/** Close to the most that a selector may cost; each request has others. */
function selectors(request: number) {
  const ones = `[${list(40, () => 1).join()}]`
  const all = `${ones}.all(a,${ones}.all(b,${ones}.all(c,a+b+c+size(device.driver)>0)))`
  return list(selectorsPerRequest, (index) => ({ cel: { expression: `${all}&&${request * selectorsPerRequest + index}>=0` } }))
}

async function createDevices(cluster: KilledCluster): Promise<void> {
  for (const node of ['n1', 'n2']) {
    const devices = list(devicesPerSlice, (index) => ({ name: `g${index}` }))
    const spec = { driver, nodeName: node, pool: { name: node, generation: 1, resourceSliceCount: 1 }, devices }
    const made = await cluster.call('POST', `${resource}/resourceslices`, { metadata: { name: node }, spec })
    assert.equal(made.status, 201, made.text)
  }
  assert.equal((await cluster.call('POST', `${resource}/deviceclasses`, { metadata: { name: 'any' }, spec: {} })).status, 201)
}

async function createPod(cluster: KilledCluster, index: number): Promise<void> {
  const requests = list(2, (at) => ({ name: `r${at}`, exactly: { deviceClassName: 'any', count: 16, selectors: selectors(at) } }))
  const claim = await cluster.call('POST', claims, { metadata: { name: `c${index}` }, spec: { devices: { requests } } })
  assert.equal(claim.status, 201, claim.text)
  const containers = [{ name: 'c', image: 'i', resources: { claims: [{ name: 'x' }] } }]
  const spec = { containers, resourceClaims: [{ name: 'x', resourceClaimName: `c${index}` }] }
  const pod = await cluster.call('POST', pods, { metadata: { name: `p${index}` }, spec })
  assert.equal(pod.status, 201, pod.text)
}

test('DRA-04 pods with 64 expensive selectors over 256 devices stop neither the loop nor others’ pods', { timeout: 240_000 }, async () => {
  const cluster = createKilledCluster()
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    await createDevices(cluster)
    for (const index of list(4, (at) => at)) await createPod(cluster, index)
    const message = ({ json }: { json: { status?: { conditions?: { type: string; message?: string }[] } } }) =>
      json.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''
    const first = await cluster.until(`${pods}/p0`, (answer) => message(answer) !== '')
    assert.match(message(first), /still searching for devices of the resource claims/)
    await cluster.longestTurnMs()
    await assertServesInnocent(cluster, 'web')
    const whileSearching = await cluster.longestTurnMs()
    assert.ok(whileSearching < maxTurnMs, `a turn of the event loop took ${whileSearching} ms`)
    await cluster.until(`${pods}/p0`, (answer) => message(answer).includes('timed out trying to allocate devices'), 90_000)
    await cluster.kill()
    await cluster.start()
    await cluster.longestTurnMs()
    await assertServesInnocent(cluster, 'after')
    const afterRestart = await cluster.longestTurnMs()
    assert.ok(afterRestart < maxTurnMs, `a turn of the event loop took ${afterRestart} ms after the restart`)
  } finally {
    await cluster.close()
  }
})
