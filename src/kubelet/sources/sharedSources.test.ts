import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOf } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { configMaps } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createSharedSources } from './sharedSources.ts'

const nodeNames = Array.from({ length: 50 }, (_, index) => `n${index}`)

function setUp() {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const stop = new AbortController()
  const sources = createSharedSources({ client: createClient(server), clock, log: noLog }, stop.signal)
  const bound = (name: string, nodeName?: string) =>
    server.put(`/api/v1/namespaces/default/pods/${name}`, { ...anObject('Pod', { namespace: 'default', name }), spec: { nodeName, containers: [] } } as never)
  return { server, clock, stop, sources, bound }
}

/** Writes down what the kubelet of the node gets. */
function follow({ sources, stop }: ReturnType<typeof setUp>, nodeName: string, until = stop.signal): string[] {
  const heard: string[] = []
  const handler = {
    replace: (pods: readonly object[]) => void heard.push(`all: ${pods.map((pod) => keyOf(pod as never)).join(' ')}`),
    changed: (pod: object) => void heard.push(`changed: ${keyOf(pod as never)}`),
    deleted: (pod: object) => void heard.push(`deleted: ${keyOf(pod as never)}`),
  }
  void sources.pods(nodeName, handler, until)
  return heard
}

test('ARC-13 fifty kubelets share one watch of pods, and each gets the pods of its node alone, in order', async () => {
  const setting = setUp()
  const { server, clock, stop, bound } = setting
  bound('early', 'n1')
  const heard = nodeNames.map((name) => follow(setting, name))
  await clock.advance(100)
  bound('late', 'n2')
  bound('unscheduled')
  bound('late', 'n2')
  server.remove('/api/v1/namespaces/default/pods/late')
  await clock.advance(100)
  assert.deepEqual(heard[1], ['all: default/early'])
  assert.deepEqual(heard[2], ['all: ', 'changed: default/late', 'changed: default/late', 'deleted: default/late'])
  assert.deepEqual(heard[3], ['all: '])
  assert.equal(server.requests.filter(({ path }) => path.includes('/pods')).length, 2, 'one list and one watch')
  stop.abort()
  await clock.advance(1)
})

test('ARC-13 a kubelet that follows its pods later gets those that are there, and after history was lost every kubelet gets its pods again', async () => {
  const setting = setUp()
  const { server, clock, stop, bound } = setting
  follow(setting, 'n1')
  bound('a', 'n2')
  await clock.advance(100)
  const heard = follow(setting, 'n2')
  assert.deepEqual(heard, ['all: default/a'])
  bound('b', 'n2')
  server.compact()
  server.endWatches()
  await clock.advance(5_000)
  assert.equal(heard.at(-1), 'all: default/a default/b')
  stop.abort()
  await clock.advance(1)
})

test('ARC-13 a kubelet follows its own Node, from the moment that it is there', async () => {
  const { server, clock, stop, sources } = setUp()
  const seen: string[] = []
  const followed = sources.node('n1', stop.signal, (node) => void seen.push(`${node.metadata.name} ${node.metadata.resourceVersion}`))
  let isSynced = false
  void followed.synced.then(() => {
    isSynced = true
  })
  server.put('/api/v1/nodes/n2', anObject('Node', { name: 'n2' }))
  await clock.advance(100)
  assert.deepEqual([seen.length, isSynced], [0, false])
  const { resourceVersion } = server.put('/api/v1/nodes/n1', anObject('Node', { name: 'n1' })).metadata
  await clock.advance(100)
  assert.deepEqual(seen, [`n1 ${resourceVersion}`])
  assert.equal(followed.get('n1')?.metadata.name, 'n1')
  assert.equal(followed.get('n2'), undefined)
  assert.equal(isSynced, true)
  stop.abort()
  await clock.advance(1)
})

test('ARC-13 a ConfigMap that pods of several nodes name has one watch, which ends with the last of them', async () => {
  const { server, clock, stop, sources } = setUp()
  const path = '/api/v1/namespaces/default/configmaps/settings'
  const settings = anObject('ConfigMap', { namespace: 'default', name: 'settings' })
  server.put(path, settings)
  const users = [new AbortController(), new AbortController()]
  const heard = [0, 0]
  const selection = { namespace: 'default', fieldSelector: 'metadata.name=settings' }
  const all = users.map(({ signal }, index) => sources.objects(configMaps, selection, signal, () => heard[index]!++))
  await clock.advance(100)
  const before = [...heard]
  server.put(path, settings)
  await clock.advance(100)
  assert.deepEqual(
    heard,
    before.map((count) => count + 1),
  )
  const watches = () => server.requests.length
  const opened = watches()
  users[0]?.abort()
  await clock.advance(100)
  assert.equal(all[1]?.get('default/settings')?.metadata.name, 'settings')
  users[1]?.abort()
  await clock.advance(100)
  server.put(path, settings)
  await clock.advance(60_000)
  assert.equal(watches(), opened, 'nothing is listed or watched after the last user left')
  sources.objects(configMaps, selection, stop.signal)
  await clock.advance(100)
  assert.equal(watches(), opened + 2)
  stop.abort()
  await clock.advance(1)
})

test('ARC-13 a kubelet that follows a selection later gets the objects that are there, as the first did', async () => {
  const { server, clock, stop, sources } = setUp()
  server.put('/api/v1/namespaces/default/configmaps/settings', anObject('ConfigMap', { namespace: 'default', name: 'settings' }))
  const heard: string[][] = [[], []]
  const follow = (index: number) => sources.objects(configMaps, {}, stop.signal, (object) => void heard[index]?.push(keyOf(object)))
  follow(0)
  await clock.advance(100)
  follow(1)
  await clock.advance(100)
  assert.deepEqual(heard, [['default/settings'], ['default/settings']])
  stop.abort()
  await clock.advance(1)
})
