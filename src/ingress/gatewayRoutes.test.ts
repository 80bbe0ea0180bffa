import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { realClock as clock } from '#testing/realClock'
import { createGatewayRoutes } from './gatewayRoutes.ts'

const metadata = (name: string) => ({ namespace: 'd', name })
const listeners = [{ name: 'l', port: 80, protocol: 'HTTP' }]
const objects: Readonly<Record<string, readonly object[]>> = {
  gatewayclasses: [{ metadata: { name: 'skiff' }, spec: { controllerName: 'skiff.dev/gateway' } }],
  gateways: [
    { metadata: metadata('a'), spec: { gatewayClassName: 'skiff', listeners: [null] } },
    { metadata: metadata('b'), spec: { gatewayClassName: 'skiff', listeners } },
  ],
  httproutes: [
    { metadata: metadata('a'), spec: { parentRefs: [{ name: 'b' }], rules: [null] } },
    { metadata: metadata('b'), spec: { parentRefs: [{ name: 'b' }], rules: [{}] } },
  ],
}

/** Informers whose objects are there from the start and never change. */
function informersOf(): SharedInformerFactory {
  const of = ({ resource }: { resource: string }) => {
    const all = new Map((objects[resource] ?? []).map((one) => [keyOf(one as KubeObject), one]))
    const store = { get: (key: string) => all.get(key), keys: () => all.keys(), list: () => [...all.values()], byIndex: () => [] }
    const addHandler = ({ onAdd }: { onAdd: (object: object) => void }) => {
      for (const one of all.values()) onAdd(one)
      return { remove: () => {} }
    }
    return { store, addHandler, addIndexers: () => {}, synced: async () => {} }
  }
  return { of } as unknown as SharedInformerFactory
}

const keyOf = ({ metadata: { namespace, name } }: KubeObject) => (namespace ? `${namespace}/${name}` : `${name}`)

test('ING-05 a Gateway and a route that cannot be read leave the others served, and are logged', async () => {
  const stop = new AbortController()
  const logged: string[] = []
  const log = { ...noLog, error: (_: unknown, message: string, { key }: { key?: string } = {}) => void logged.push(`${message}: ${key}`) }
  const routes = createGatewayRoutes({ informers: informersOf(), clock, random: seededRandom(1), log })
  const running = routes.run(stop.signal)
  await routes.ready
  assert.deepEqual([...routes.table.portsOf('d/b').keys()], [80])
  assert.equal(routes.table.attachedCount('d/b', 'l'), 1)
  assert.deepEqual(
    ['d/a', 'HTTPRoute/d/a'].map((key) => logged.includes(`A Gateway or route could not be taken over: ${key}`)),
    [true, true],
  )
  stop.abort(new Error('the test is over'))
  await running
})
