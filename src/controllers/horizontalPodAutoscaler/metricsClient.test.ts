/** What is asked of the metrics APIs, and what becomes of odd answers. Upstream: metrics/client_test.go (v1.36). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import { notFound } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { ApiRequest, Transport } from '#client/transport'
import { createMetricsClient } from './metricsClient.ts'

const group = '/apis/custom.metrics.k8s.io'
const v1beta1 = { versions: [{ groupVersion: 'custom.metrics.k8s.io/v9' }, { groupVersion: 'custom.metrics.k8s.io/v1beta1' }] }

/** @param bodies by path; the last one for all other paths */
function clientOf(bodies: Readonly<Record<string, unknown>>, body: unknown) {
  const asked: string[] = []
  const clock = new VirtualClock()
  const request = async ({ path, query = {} }: ApiRequest) => {
    asked.push([path, ...Object.entries(query).map(([key, value]) => `${key}=${value}`)].join(' '))
    const found = path in bodies ? bodies[path] : body
    if (found instanceof Error) throw found
    return { status: 200, warnings: [], body: found }
  }
  const resources = { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment' }
  const mapper = { resourcesOf: async (group: string) => [{ ...resources, group, ...(group === '' ? { resource: 'services' } : {}) } as never] }
  const client = createMetricsClient({ transport: { request } as unknown as Transport, mapper, clock, syncPeriodMs: 15_000 })
  return { asked, clock, queries: () => client.queries('n', parseLabelSelector('app=web'), new AbortController().signal) }
}

const timestamp = '2026-01-01T00:00:00Z'
const atMs = Date.parse(timestamp)
const usage = (name: string, containers: unknown) => ({ metadata: { name }, timestamp, window: '15s', containers })

test('AUT-01 the usage of pods is asked for once in a sync, and a pod with an unmeasured container is left out', async () => {
  const both = (cpu: string) => [
    { name: 'a', usage: { cpu, memory: '1Ki' } },
    { name: 'b', usage: { cpu: '50m' } },
  ]
  const items = [usage('one', both('100m')), usage('two', [{ name: 'a' }]), usage('three', []), usage('four', 'odd')]
  const { queries, asked } = clientOf({}, { items })
  const all = queries()
  assert.deepEqual(await all.ofResource('cpu', ''), new Map([['one', { value: 150, atMs, windowMs: 15_000 }]]))
  assert.deepEqual(await all.ofResource('cpu', 'b'), new Map([['one', { value: 50, atMs, windowMs: 15_000 }]]))
  assert.deepEqual(await all.ofResource('memory', 'a'), new Map([['one', { value: 1_024_000, atMs, windowMs: 15_000 }]]))
  assert.deepEqual(await all.ofResource('constructor', 'a'), new Map())
  assert.deepEqual(asked, ['/apis/metrics.k8s.io/v1beta1/namespaces/n/pods labelSelector=app=web'])
})

test('AUT-01 custom metrics are asked for in a version that the server has, which is remembered for a period', async () => {
  const items = [{ describedObject: { name: 'p' }, timestamp, value: '1500m', window: 30 }]
  const { queries, asked, clock } = clientOf({ [group]: v1beta1 }, { items })
  const metric = { name: 'q/s', selector: { matchLabels: { a: 'b' } } }
  assert.deepEqual(await queries().ofPods(metric), new Map([['p', { value: 1500, atMs, windowMs: 30_000 }]]))
  assert.equal(await queries().ofObject({ name: 'qps' }, { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }), 1500)
  assert.equal(await queries().ofObject({ name: 'qps' }, { kind: 'Service', name: 's' }), 1500)
  assert.equal(await queries().ofObject({ name: 'qps' }, { apiVersion: 'v1', kind: 'Namespace', name: 'elsewhere' }), 1500)
  const base = `${group}/v1beta1/namespaces/n`
  assert.deepEqual(asked, [
    group,
    `${base}/pods/*/q%2Fs labelSelector=app=web metricLabelSelector=a=b`,
    `${base}/deployments.apps/d/qps`,
    `${base}/services/s/qps`,
    `${base}/metrics/qps`,
  ])
  await clock.advance(15_000)
  await queries().ofPods({ name: 'qps' })
  assert.equal(asked.filter((path) => path === group).length, 2)
})

test('AUT-01 the values of an external metric are summed, a million of them too', async () => {
  const items = Array.from({ length: 1_000_000 }, () => ({ value: '2m' }))
  const { queries, asked } = clientOf({}, { items })
  assert.equal(await queries().ofExternal({ name: 'queue', selector: { matchLabels: { a: 'b' } } }), 2_000_000)
  assert.deepEqual(asked, ['/apis/external.metrics.k8s.io/v1beta1/namespaces/n/queue labelSelector=a=b'])
})

const unreadable = 'unable to fetch metrics from external metrics API: '
const odd: readonly [name: string, body: unknown, want: string][] = [
  ['no list', { items: 'many' }, `${unreadable}the answer is not a list`],
  ['nothing', undefined, `${unreadable}the answer is not a list`],
  ['an empty list', { items: [] }, 'no metrics returned from external metrics API'],
  ['a refusal', notFound({ group: '', resource: 'queue' }, 'q'), `${unreadable}queue "q" not found`],
]
for (const [name, body, want] of odd)
  test(`AUT-01 ${name} from the external metrics API is an error`, () =>
    assert.rejects(clientOf({}, body).queries().ofExternal({ name: 'q' }), new Error(want)))

test('AUT-01 a cluster without custom metrics, and one with unknown versions alone, are errors', async () => {
  const prefix = 'unable to fetch metrics from custom metrics API: '
  const absent = clientOf({ [group]: notFound({ group: '', resource: 'x' }, 'y') }, {})
  await assert.rejects(absent.queries().ofPods({ name: 'q' }), new Error(`${prefix}no custom metrics API (custom.metrics.k8s.io) registered`))
  const unknown = clientOf({ [group]: { versions: [{ groupVersion: 'custom.metrics.k8s.io/v9' }] } }, {})
  await assert.rejects(unknown.queries().ofPods({ name: 'q' }), new Error(`${prefix}no known available metric versions found`))
})
