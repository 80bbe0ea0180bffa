import assert from 'node:assert/strict'
import test from 'node:test'
import { parseRequestInfo } from '../core/requestInfo.ts'
import { requestOf } from '../core/testRequest.ts'
import { WatchTracker } from './watchTracker.ts'
import { createWorkEstimator } from './workEstimate.ts'

const pods = '/api/v1/namespaces/a/pods'

function infoOf(method: string, url: string) {
  const [path = '', query] = url.split('?')
  return parseRequestInfo(method, path, new URLSearchParams(query))
}

function requestFor(method: string, url: string) {
  return Object.assign(requestOf({ method, url }), { info: infoOf(method, url) })
}

const lists = [
  { url: pods, want: 5, why: 'all, from the cache' },
  { url: `${pods}?limit=10`, want: 1, why: 'a page from the cache' },
  { url: `${pods}?limit=250&continue=x`, want: 3, why: 'a page from the store' },
  { url: `${pods}?limit=10&continue=x&labelSelector=a`, want: 3, why: 'half of the store is looked at' },
  { url: `${pods}?fieldSelector=metadata.name=x`, want: 1, why: 'one object' },
  { url: `${pods}/x`, want: 1, why: 'a get' },
  { url: `${pods}?watch=1`, want: 5, why: 'a watch from the state' },
  { url: `${pods}?watch=1&resourceVersion=7`, want: 1, why: 'a watch that goes on' },
  { url: `${pods}?watch=1&resourceVersion=7&sendInitialEvents=true`, want: 5, why: 'a streaming list' },
  { url: '/api/v1/nodes', want: 10, why: 'the cache writes in pieces' },
  { url: '/api/v1/nodes?resourceVersion=5&resourceVersionMatch=Exact', want: 60, why: 'the store does not' },
  { url: '/api/v1/nodes?resourceVersion=5&resourceVersionMatch=Exact', want: 7, maxSeats: 7, why: 'more than the level gives' },
  { url: '/apis/metrics.k8s.io/v1/pods', want: 1, why: 'another server answers' },
  { url: '/healthz', want: 1, why: 'no resource' },
]
for (const { url, want, maxSeats = 0, why } of lists) {
  test(`API-18 ${url} takes ${want} seats: ${why}`, () => {
    const stats = { pods: { objectCount: 500, averageBytes: 1000 }, nodes: { objectCount: 1000, averageBytes: 6000 } }
    const { estimate } = createWorkEstimator({
      objectStats: ({ apiGroup, resource }) => (apiGroup === '' ? stats[resource as keyof typeof stats] : undefined),
      watchCount: () => 0,
    })
    assert.deepEqual(estimate(requestFor('GET', url), maxSeats), { initialSeats: want, finalSeats: 0, additionalLatencyMs: 0 })
  })
}

const writes = [
  { watches: 9, maxSeats: 0, want: { finalSeats: 0, additionalLatencyMs: 0 } },
  { watches: 10, maxSeats: 0, want: { finalSeats: 1, additionalLatencyMs: 5 } },
  { watches: 95, maxSeats: 0, want: { finalSeats: 10, additionalLatencyMs: 5 } },
  { watches: 200, maxSeats: 0, want: { finalSeats: 10, additionalLatencyMs: 10 } },
  { watches: 40, maxSeats: 2, want: { finalSeats: 2, additionalLatencyMs: 10 } },
]
for (const { watches, maxSeats, want } of writes) {
  test(`API-18 a write with ${watches} watches, at most ${maxSeats} seats`, () => {
    const { estimate } = createWorkEstimator({ objectStats: () => undefined, watchCount: () => watches })
    assert.deepEqual(estimate(requestFor('POST', pods), maxSeats), { initialSeats: 1, ...want })
    assert.equal(estimate(requestFor('POST', '/api/v1/namespaces/a/serviceaccounts/s/token'), maxSeats).finalSeats, 0)
  })
}

test('API-18 a watch counts for the writes whose events it gets', () => {
  const tracker = new WatchTracker()
  const watch = (url: string) => tracker.register(infoOf('GET', `${url}${url.includes('?') ? '&' : '?'}watch=1`))
  const forget = [watch('/api/v1/pods'), watch(pods), watch(`${pods}?fieldSelector=metadata.name=x`), watch('/api/v1/namespaces/b/pods')]
  watch('/api/v1/pods?fieldSelector=spec.nodeName=n1')
  const counts = () => ['POST', 'PUT'].map((method) => tracker.interested(infoOf(method, method === 'PUT' ? `${pods}/x` : pods)))
  assert.deepEqual(counts(), [2, 3])
  for (const one of forget) one()
  assert.deepEqual(counts(), [0, 0])
})
