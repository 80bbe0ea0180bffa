/** The simulated nodes of a server, as their plan changes: each request reaches the kubelet that runs now. */
import assert from 'node:assert/strict'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { simulatedNodeAddress } from '#kubelet/runtime/simulated/machine'
import { createOwnKubelets } from '#main/layouts/ownKubelets'
import { createSimulatedNodes } from '#main/layouts/simulatedNodes'
import type { PlannedNode } from '#main/localCluster/simulatedPlan'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import { createPrometheusMetrics } from '#main/prometheus'
import { startCluster, type TestCluster } from '#testing/cluster'

let cluster: TestCluster
let ca: KeyPair
let serving: KeyPair
let admin: KeyPair
let planned: PlannedNode[] = []
let removed: string[] = []
let look = () => {}
let running: Promise<void>
const ownKubelets = createOwnKubelets()
const stop = new AbortController()

/** The Node of this name is never registered. */
const lost = 'lost'

function clientOf(name: string): Client {
  const client = cluster.clientAs({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] })
  if (name !== lost) return client
  const refuse = () => Promise.reject(new Error('no Node of this name'))
  return { of: (resource: never) => Object.assign(Object.create(client.of(resource)), { create: refuse }) } as unknown as Client
}

before(async () => {
  cluster = await startCluster({ clock: 'real', nodes: 0 })
  ca = await createAuthority('test', Date.now(), 1)
  serving = await issueCertificate(ca, { commonName: 'kubelets', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, Date.now())
  admin = await issueCertificate(ca, { commonName: 'admin', organizations: ['system:masters'], usage: 'client', validDays: 1 }, Date.now())
  const simulated = createSimulatedNodes({
    planned: async () => planned,
    removed: async () => removed,
    tools: { clock: cluster.clock, random: seededRandom(1), log: noLog, metrics: createPrometheusMetrics() },
    ownKubelets,
    clientOf,
    manager: managerClient(),
    clusterDns: '10.96.0.10',
    clusterDomain: 'cluster.local',
    tainted: false,
    serving: { cert: serving.cert, key: serving.key, clientCa: ca.cert },
    onLook: (apply) => {
      look = apply
    },
  })
  running = simulated.run(stop.signal)
})

after(async () => {
  stop.abort()
  await running
  await cluster.close()
})

/** The manager's client, whose deletions of this Node fail so often. */
const stubborn = { name: 'stubborn', failures: 0 }
function managerClient(): Client {
  const of = (resource: never) => {
    const client = cluster.client.of(resource) as unknown as { delete(ref: { name: string }): Promise<unknown> }
    const remove = async (ref: { name: string }) => {
      if (ref.name === stubborn.name && stubborn.failures-- > 0) throw new Error('a fault on purpose')
      return client.delete(ref)
    }
    return Object.assign(Object.create(client), { delete: remove })
  }
  return Object.assign(Object.create(cluster.client), { of })
}

function plan(...names: readonly (readonly [name: string, number: number])[]): void {
  planned = names.map(([name, number]) => ({ name, number }))
  look()
}

const nodeNames = async () => (await cluster.client.of(nodes).list()).items.map(({ metadata }) => metadata.name).join()
const nodesAre = (names: string) => cluster.until(async () => (await nodeNames()) === names, 10_000)

/** The names of the pods that the kubelet at the address of the node with this number has. */
async function podsAt(port: number, number: number): Promise<string[]> {
  const options = { ca: ca.cert, cert: admin.cert, key: admin.key, headers: { host: simulatedNodeAddress(number) }, agent: false }
  const body = await new Promise<string>((resolve, reject) => {
    const request = https.request(`https://127.0.0.1:${port}/pods`, options, (response) => void text(response).then(resolve, reject))
    request.on('error', reject).end()
  })
  return body.startsWith('{') ? (JSON.parse(body).items ?? []).map((pod: { metadata: { name: string } }) => pod.metadata.name) : [body]
}

test('ARC-13 a node that gets the number of a removed node answers itself at the address of both', async () => {
  plan(['first', 1])
  await nodesAre('first')
  const port = (await cluster.client.of(nodes).get({ name: 'first' })).status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0
  assert.deepEqual(await podsAt(port, 1), [])
  assert.equal(ownKubelets.listenAddress('first', simulatedNodeAddress(1), port), '127.0.0.1')
  plan()
  await nodesAre('')
  assert.match((await podsAt(port, 1)).join(), /names the address of no node/)
  assert.equal(ownKubelets.listenAddress('first', simulatedNodeAddress(1), port), undefined)
  assert.equal(ownKubelets.measure('first'), undefined)
  plan(['second', 1])
  await nodesAre('second')
  assert.deepEqual(await podsAt(port, 1), [])
  await cluster.client.of(pods).create({
    metadata: { namespace: 'default', name: 'web' },
    spec: { nodeName: 'second', terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'web:1' }] },
  })
  await cluster.until(async () => (await podsAt(port, 1)).join() === 'web', 10_000)
})

test('ARC-13 a node that cannot register keeps no other node from being added or removed, nor itself', async () => {
  plan([lost, 1], ['a', 2])
  await nodesAre('a')
  plan([lost, 1], ['b', 3])
  await nodesAre('b')
  plan(['b', 3])
  await cluster.until(async () => ownKubelets.measure(lost) === undefined, 10_000)
  plan([lost, 1], ['c', 2])
  await nodesAre('c')
})

test('ARC-13 the Node of a removed node is deleted after a deletion failed, and so is one that an earlier server left', async () => {
  plan([stubborn.name, 4])
  await nodesAre(stubborn.name)
  await cluster.client.of(nodes).create({ metadata: { name: 'orphan' }, spec: {} })
  stubborn.failures = 1
  removed = ['orphan', stubborn.name]
  plan()
  await nodesAre('')
  assert.equal(stubborn.failures, -1)
})
