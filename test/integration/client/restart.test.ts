/** An informer over the wire while its server is restarted, and while history is compacted: it misses no change. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { ConfigMap } from '#api/gen/types/core.v1'
import { keyOf } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { configMaps, namespaces } from '#client/builtIn'
import { createSharedInformer } from '#client/cache/sharedInformer'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { until } from '../../support/until.ts'

/** One address in front of servers that start and stop; while there is none, connections are closed. */
async function address() {
  let port: number | undefined
  const sockets = new Set<net.Socket>()
  const server = net.createServer((client) => {
    if (port === undefined) return client.destroy()
    const onward = net.connect(port, '127.0.0.1')
    for (const [one, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      sockets.add(one.on('error', () => other.destroy()))
      one.once('close', () => other.destroy())
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead: (to: number | undefined) => {
      port = to
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
    close: () => server.close(),
  }
}

test('CGO-01 an informer survives a restart of its server, and compaction meanwhile, with no event missed', async () => {
  const store = createMemoryStore({ clock: realClock })
  const front = await address()
  let api = await startTestApiServer({ store: lastingStore(store) })
  const listener = await api.listen()
  front.lead(listener.port)
  await api.client.of(namespaces).create({ metadata: { name: 'x' }, spec: {} })
  // Each server has a certificate of its own; certificate checks are not tested here.
  const transport = createHttpTransport({ server: front.url, tls: { insecureSkipVerify: true }, bearerToken: listener.token, clock: realClock })
  // Waits between tries are proven under virtual time; here they would only take time.
  const impatient = { ...realClock, sleep: (ms: number, signal?: AbortSignal) => realClock.sleep(Math.min(ms, 50), signal) }
  const deps = { clock: impatient, random: { next: () => 0, int: () => 0 }, log: noLog }
  const informer = createSharedInformer<ConfigMap>(createClient(transport).of(configMaps), deps, { namespace: 'x' })
  const model = new Map<string, string>()
  informer.addHandler({
    onAdd: (object) => {
      assert.equal(model.has(keyOf(object)), false)
      model.set(keyOf(object), object.data?.v ?? '')
    },
    onUpdate: (old, object) => {
      assert.equal(model.get(keyOf(object)), old.data?.v ?? '')
      model.set(keyOf(object), object.data?.v ?? '')
    },
    onDelete: (object) => assert.equal(model.delete(keyOf(object)), true),
  })
  const stop = new AbortController()
  const running = informer.run(stop.signal)
  const write = (name: string, v: string) =>
    api.client
      .of(configMaps)
      .patch({ namespace: 'x', name }, 'apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { v } }, { fieldManager: 't' })
  const remove = (name: string) => api.client.of(configMaps).delete({ namespace: 'x', name })
  const chance = seededRandom(7)
  try {
    await informer.synced(AbortSignal.timeout(60_000))
    for (const compacts of [false, true]) {
      await write('before', String(compacts))
      await until('the model has the first write', () => model.get('x/before') === String(compacts))
      front.lead(undefined)
      for (let i = 0; i < 20; i++) await write(`m${chance.int(8)}`, String(i))
      await remove('before')
      if (compacts) await store.compact((await store.range('/', undefined, { limit: 1 })).revision)
      await api.close()
      api = await startTestApiServer({ store: lastingStore(store) })
      await write('after', String(compacts))
      front.lead((await api.listen()).port)
      const wanted = async () => new Map((await api.client.of(configMaps).list({ namespace: 'x' })).items.map((item) => [keyOf(item), item.data?.v ?? '']))
      await until('the model has the last write', () => model.get('x/after') === String(compacts))
      assert.deepEqual(new Map([...model].sort()), new Map([...(await wanted())].sort()))
    }
  } finally {
    stop.abort()
    await running
    await transport.close()
    front.close()
    await api.close()
    await store.close()
  }
})
