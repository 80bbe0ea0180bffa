/** Limits of the pipeline: requests in flight, deadlines. */
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { Cancellation } from '#apiserver/core/cancellation'
import type { ServerRequest, UserInfo } from '#apiserver/core/request'
import { timeoutStage } from '#apiserver/pipeline/timeout'
import { VirtualClock } from '#base/virtualClock'
import { configMaps } from '#client/builtIn'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { changedStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'

/** A server that is closed whatever becomes of the test: one left open would keep the whole run waiting. */
async function startServer(t: TestContext, options?: TestApiServerOptions): Promise<TestApiServer> {
  const api = await startTestApiServer(options)
  t.after(() => api.close())
  return api
}

const jane: UserInfo = { name: 'jane', groups: ['system:authenticated'] }

/** Requests in flight are counted; there are no queues. */
const counted = { maxInFlight: { readOnly: 10, mutating: 2 }, config: { priorityAndFairness: false } }

test('API-19 a request above the limit in flight is refused with Retry-After of a second', async (t) => {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const slow = { name: 'Slow', handles: () => true, validate: ({ user }: { user: UserInfo }) => (user.name === 'jane' ? held : undefined) }
  const api = await startServer(t, { ...counted, deps: () => ({ admission: [slow] }) })
  const create = (name: string) =>
    api
      .clientAs(jane)
      .of(configMaps)
      .create({ metadata: { namespace: 'default', name } })
  t.after(release)
  const first = [create('a'), create('b')]
  await assert.rejects(create('c'), (error) => isStatus(error, 'TooManyRequests') && error.details?.retryAfterSeconds === 1)
  assert.equal((await api.clientAs(jane).of(configMaps).list({ namespace: 'default' })).items.length, 0)
  release()
  await Promise.all(first)
  await create('d')
})

test('API-19 beyond the limit the components of the server itself wait for their turn', async (t) => {
  const scheduler: UserInfo = { name: 'system:kube-scheduler', groups: ['system:authenticated'] }
  let running = 0
  let most = 0
  const busy = {
    name: 'Busy',
    handles: () => true,
    validate: async ({ user }: { user: UserInfo }) => {
      if (user.name !== scheduler.name) return
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
    },
  }
  const api = await startServer(t, { ...counted, deps: () => ({ admission: [busy] }) })
  const client = api.clientAs(scheduler)
  const names = ['a', 'b', 'c', 'd', 'e']
  const made = await Promise.all(names.map((name) => client.of(configMaps).create({ metadata: { namespace: 'default', name } })))
  assert.deepEqual(
    made.map(({ metadata }) => metadata.name),
    names,
  )
  assert.equal(most, 2)
})

test('API-20 a request that takes too long is answered with a timeout', async (t) => {
  const never = {
    name: 'Never',
    handles: () => true,
    admit: ({ user }: { user: UserInfo }) => (user.name === 'jane' ? new Promise<void>(() => {}) : undefined),
  }
  const api = await startServer(t, { requestTimeoutMs: 50, deps: () => ({ admission: [never] }) })
  const call = api
    .clientAs(jane)
    .of(configMaps)
    .create({ metadata: { namespace: 'default', name: 'a' } })
  // A test's timer is unreferenced, so it alone does not keep the process alive.
  const alive = setTimeout(() => {}, 5_000)
  t.after(() => clearTimeout(alive))
  await assert.rejects(call, (error) => isStatus(error, 'Timeout') && error.code === 504)
})

test("API-20 a request's timeout aborts the work on it", async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const request = { cancellation: new Cancellation(), timeoutMs: 2_000 } as unknown as ServerRequest
  let work: AbortSignal | undefined
  const answer = timeoutStage(clock).handle(request, () => {
    work = request.cancellation.signal
    return new Promise(() => {})
  })
  const refused = assert.rejects(Promise.resolve(answer), (error) => isStatus(error, 'Timeout'))
  await clock.advance(1_999)
  assert.equal(work?.aborted, false)
  await clock.advance(1)
  await refused
  assert.equal(work?.aborted, true)
})

test('API-02 admission runs only for requests that were authorized', async (t) => {
  let asked = 0
  const counting = { name: 'Counting', handles: () => true, admit: ({ user }: { user: UserInfo }) => void (user.name === 'jane' && asked++) }
  const api = await startServer(t, {
    deps: () => ({
      admission: [counting],
      authorizers: [
        { name: 'test', authorize: ({ user }) => (user.name === 'jane' ? { decision: 'deny', reason: 'not jane' } : { decision: 'allow', reason: '' }) },
      ],
    }),
  })
  const call = api
    .clientAs(jane)
    .of(configMaps)
    .create({ metadata: { namespace: 'default', name: 'a' } })
  await assert.rejects(call, (error) => isStatus(error, 'Forbidden') && error.message.endsWith(': not jane'))
  assert.equal(asked, 0)
})

test("a full store refuses writes with etcd's message, and reads still succeed", async (t) => {
  const kept = createMemoryStore({ clock: realClock })
  let full = false
  const transact: Store['transact'] = (transaction) =>
    full ? Promise.reject(Object.assign(new Error('full'), { code: 'noSpace' })) : kept.transact(transaction)
  const store = changedStore(kept, { transact })
  const api = await startServer(t, { store })
  full = true
  const call = api
    .clientAs(jane)
    .of(configMaps)
    .create({ metadata: { namespace: 'default', name: 'a' } })
  await assert.rejects(call, (error) => isStatus(error) && error.code === 500 && error.message === 'etcdserver: mvcc: database space exceeded')
  assert.equal((await api.client.of(configMaps).list()).items.length, 0)
  full = false
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' } })
})
