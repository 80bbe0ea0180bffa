import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expired, StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { configMaps, pods } from './builtIn.ts'
import { createClient } from './clientOverTransport.ts'
import { listAll } from './listAll.ts'
import { defaultBackoff, retryOnConflict } from './retryOnConflict.ts'
import type { ApiRequest, Transport } from './transport.ts'
import { hasCondition, poll, waitFor } from './waitFor.ts'

const conflict = () => new StatusError('Conflict', 'the object has been modified')

test('a write that conflicts is tried again five times, or with growing waits; other errors at once', async () => {
  const clock = new VirtualClock()
  const deps = { clock, random: { next: () => 0, int: () => 0 } }
  const at: number[] = []
  const failing = (error: Error) => async () => {
    at.push(clock.monotonicMs())
    throw error
  }
  const first = assert.rejects(retryOnConflict(deps, failing(conflict())), /modified/)
  await clock.advance(1000)
  await first
  assert.deepEqual(at, [0, 10, 20, 30, 40])
  at.length = 0
  const second = assert.rejects(retryOnConflict(deps, failing(conflict()), { options: defaultBackoff }), /modified/)
  await clock.advance(1000)
  await second
  assert.deepEqual(at, [1000, 1010, 1060, 1310])
  at.length = 0
  await assert.rejects(retryOnConflict(deps, failing(new StatusError('Invalid', 'bad'))), /bad/)
  assert.equal(at.length, 1)
  assert.equal(await retryOnConflict(deps, async () => 7), 7)
})

/** Lists five objects two at a time; `break` decides what becomes of a request. */
function paged(before: (request: ApiRequest) => void): Transport & { readonly asked: ApiRequest[] } {
  const names = ['a', 'b', 'c', 'd', 'e']
  const asked: ApiRequest[] = []
  return {
    asked,
    request: async (request) => {
      asked.push(request)
      before(request)
      const limit = Number(request.query?.limit ?? names.length)
      const from = Number(request.query?.continue ?? 0)
      const next = from + limit < names.length ? String(from + limit) : undefined
      const items = names.slice(from, from + limit).map((name) => anObject('Pod', { namespace: 'x', name }))
      return {
        status: 200,
        warnings: [],
        body: { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '7', ...(next ? { continue: next } : {}) }, items },
      }
    },
    watch: () => assert.fail('no watch'),
  }
}

test('a long list is read in pages at one version; when the version expires between pages, the whole list is read again', async () => {
  const whole = paged(() => {})
  const list = await listAll(createClient(whole).of(pods), { limit: 2, labelSelector: 'l', resourceVersion: '5' })
  assert.deepEqual([list.items.map(({ metadata }) => metadata.name).join(''), list.metadata], ['abcde', { resourceVersion: '7' }])
  assert.deepEqual(
    whole.asked.map(({ query }) => [query?.labelSelector, query?.resourceVersion, query?.continue]),
    [
      ['l', '5', undefined],
      ['l', undefined, '2'],
      ['l', undefined, '4'],
    ],
  )
  const forgetful = paged(({ query }) => {
    if (query?.continue === '4') throw expired('the provided continue parameter is too old')
  })
  assert.equal((await listAll(createClient(forgetful).of(pods), { limit: 2 })).items.length, 5)
  assert.deepEqual([forgetful.asked.length, forgetful.asked.at(-1)?.query?.limit], [4, undefined])
  const gone = paged(() => {
    throw expired('too old')
  })
  await assert.rejects(listAll(createClient(gone).of(pods)), /too old/)
})

test('waiting for an object sees every state, its absence too, over breaks; it ends with the signal or with a fault of the condition', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const deps = { clock, random: seededRandom(1), log: noLog }
  const of = createClient(server).of(configMaps)
  const at = '/api/v1/namespaces/x/configmaps/a'
  const write = (status?: object) => server.put(at, anObject('ConfigMap', { namespace: 'x', name: 'a' }, { status }))
  const wait = (holds: Parameters<typeof waitFor>[2]) => waitFor(of, { namespace: 'x', name: 'a' }, holds as never, deps, stop.signal)
  const stop = new AbortController()

  const ready = wait(hasCondition('Ready'))
  await clock.advance(0)
  write()
  server.put(
    '/api/v1/namespaces/x/configmaps/b',
    anObject('ConfigMap', { namespace: 'x', name: 'b' }, { status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
  )
  server.endWatches(new Error('reset'))
  write({ conditions: [{ type: 'Ready', status: 'True' }] })
  await clock.advance(5_000)
  assert.equal((await ready)?.metadata.name, 'a')

  const gone = wait((object) => object === undefined)
  await clock.advance(0)
  server.remove(at)
  await clock.advance(0)
  assert.equal(await gone, undefined)

  const faulty = assert.rejects(
    wait(() => {
      throw new Error('fault')
    }),
    /fault/,
  )
  await clock.advance(0)
  await faulty
  const given = assert.rejects(
    wait(() => false),
    /enough/,
  )
  await clock.advance(0)
  stop.abort(new Error('enough'))
  await clock.advance(0)
  await given
})

test('polling asks at once and then every so often, until there is an answer or the signal', async () => {
  const clock = new VirtualClock()
  const never = new AbortController()
  let asked = 0
  const answer = poll(clock, 100, () => (++asked === 3 ? 'yes' : undefined), never.signal)
  await clock.advance(200)
  assert.equal(await answer, 'yes')
  const given = assert.rejects(
    poll(clock, 100, () => false, never.signal),
    /enough/,
  )
  await clock.advance(50)
  never.abort(new Error('enough'))
  await given
})
