/** Mutated Ingresses, as no API server should let them pass: reading and routing them never throws, takes bounded steps and leaves neighbours as they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ingress } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { createMutator } from '#testing/mutator'
import { threadMs } from '#testing/threadTime'
import { parseIngress } from './parsedIngress.ts'
import { comparablePath } from './requestPath.ts'
import { RoutingTable } from './routingTable.ts'

const random = seededRandom(7)
const { mutate, pickOdd } = createMutator(random)

const spec = {
  ingressClassName: 'skiff',
  defaultBackend: { service: { name: 's', port: { number: 80 } } },
  rules: [{ host: 'a.test', http: { paths: [{ path: '/a/b', pathType: 'Prefix', backend: { service: { name: 's', port: { name: 'http' } } } }] } }],
  tls: [{ hosts: ['a.test', '*.b.test'], secretName: 'c' }],
}
const neighbour = {
  ...spec,
  rules: [{ host: 'neighbour.test', http: { paths: [{ path: '/n', pathType: 'Exact', backend: { service: { name: 'n', port: { number: 80 } } } }] } }],
  tls: [{ hosts: ['neighbour.test'], secretName: 'n' }],
}

function parsed(name: string, of: unknown) {
  const metadata = { name, namespace: 'd', creationTimestamp: '2026-01-01T00:00:00Z' }
  return parseIngress({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec: of, status: {} } as unknown as Frozen<Ingress>)
}

test('ING-02 100,000 mutated Ingresses come and go in a table without an error, leave a neighbour’s route and certificate, and nothing else', () => {
  const table = new RoutingTable()
  const keys = new Set<string>()
  const served = () => [table.route('neighbour.test', '/n')?.backend.service, table.certificate('neighbour.test')]
  for (const _ of table.update(new Map([['d/neighbour', parsed('neighbour', neighbour)]])));
  let slowest = 0
  let beforeMs = threadMs()
  let problems = 0
  for (let i = 0; i < 100_000; i++) {
    const name = `i${random.int(200)}`
    const given = mutate(spec)
    let steps = 0
    const ingress = parsed(name, given)
    for (const _ of table.update(new Map([[`d/${name}`, ingress]]))) steps++
    assert.ok(steps <= 1, `${steps} pauses`)
    keys.add(`d/${name}`)
    problems += table.problems(`d/${name}`).length > 0 ? 1 : 0
    table.route(String(pickOdd()), comparablePath(String(pickOdd())) ?? '/')
    table.certificate(String(pickOdd()))
    if (i % 50 > 0) continue
    assert.deepEqual(served(), ['d/n', 'd/n'])
    slowest = Math.max(slowest, threadMs() - beforeMs)
    beforeMs = threadMs()
  }
  assert.ok(problems > 1000 && problems < 99_000, `with problems: ${problems}`)
  for (const key of keys) for (const _ of table.update(new Map([[key, undefined]])));
  assert.deepEqual([table.keys(), served()], [['d/neighbour'], ['d/n', 'd/n']])
  for (const _ of table.update(new Map([['d/neighbour', undefined]])));
  assert.deepEqual(table.keys(), [])
  for (const host of ['a.test', 'x.b.test', 'neighbour.test', '', 'z']) assert.equal(table.route(host, '/a/b'), undefined)
  assert.ok(slowest < 250, `fifty Ingresses took ${slowest} ms`)
})
