/** Mutated Ingresses, as no API server should let them pass: reading and routing them never throws and takes bounded steps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ingress } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { parseIngress } from './parsedIngress.ts'
import { comparablePath } from './requestPath.ts'
import { RoutingTable } from './routingTable.ts'

const random = seededRandom(7)
const pick = <T>(list: readonly T[]): T => list[random.int(list.length)] as T
const odd = [
  undefined,
  null,
  '',
  '/',
  '//',
  '/..',
  '%',
  '%00',
  '*',
  '*.x',
  '*.',
  '.',
  '/a/../b',
  'A.B',
  '__proto__',
  'constructor',
  0,
  -1,
  80,
  1e9,
  {},
  [],
  true,
  'x'.repeat(5000),
]

function mutate(value: unknown, depth = 0): unknown {
  if (random.int(12) === 0) return pick(odd)
  if (depth > 8 || typeof value !== 'object' || value === null) return random.int(6) === 0 ? pick(odd) : value
  if (Array.isArray(value)) return value.flatMap((item) => Array.from({ length: random.int(4) }, () => mutate(item, depth + 1)))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mutate(item, depth + 1)]))
}

const spec = {
  ingressClassName: 'skiff',
  defaultBackend: { service: { name: 's', port: { number: 80 } } },
  rules: [{ host: 'a.test', http: { paths: [{ path: '/a/b', pathType: 'Prefix', backend: { service: { name: 's', port: { name: 'http' } } } }] } }],
  tls: [{ hosts: ['a.test', '*.b.test'], secretName: 'c' }],
}

test('ING-02 10,000 mutated Ingresses come and go in a table without an error, and leave nothing', () => {
  const table = new RoutingTable()
  const keys: string[] = []
  for (let i = 0; i < 10_000; i++) {
    const name = `i${random.int(200)}`
    const object = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name, namespace: 'd' }, spec: mutate(spec), status: {} }
    const parsed = parseIngress(object as unknown as Frozen<Ingress>)
    for (const _ of table.update(new Map([[`d/${name}`, parsed]]))) assert.ok(true)
    keys.push(`d/${name}`)
    table.problems(`d/${name}`)
    table.route(String(pick(odd)), comparablePath(String(pick(odd))) ?? '/')
    table.certificate(String(pick(odd)))
  }
  for (const key of keys) for (const _ of table.update(new Map([[key, undefined]]))) assert.ok(true)
  assert.deepEqual(table.keys(), [])
  for (const host of ['a.test', 'x.b.test', '', 'z']) assert.equal(table.route(host, '/a/b'), undefined)
})
