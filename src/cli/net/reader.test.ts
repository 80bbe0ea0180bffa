import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '#api/machinery/status'
import { printableData } from '#base/printable'
import type { Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'
import { createReader, missingRight, namedObject, required, viewOf } from './reader.ts'
import { describeRoutes } from './route.ts'
import { describeService } from './service.ts'

function readerOf(answer: () => unknown) {
  return createReader({ request: async () => ({ status: 200, body: answer(), warnings: [] }) } as unknown as Transport)
}

const refuse = (reason: 'Forbidden' | 'NotFound' | 'InternalError', message: string) => () => {
  throw new StatusError(reason, message)
}

test('AUZ-01 skiff net names the right that the caller lacks', () => {
  assert.equal(missingRight('nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope'), 'you may not list nodes')
  assert.equal(
    missingRight('services "x" is forbidden: User "jane" cannot get resource "services" in API group "" in the namespace "d"'),
    'you may not get services in the namespace d',
  )
  assert.equal(
    missingRight('noderoutes.node.skiff.dev is forbidden: User "j" cannot list resource "noderoutes" in API group "node.skiff.dev" at the cluster scope'),
    'you may not list noderoutes.node.skiff.dev',
  )
  assert.equal(missingRight('no'), 'no')
})

test('AUZ-01 skiff net leaves out what the caller may not read, tells what does not exist, and fails when the object itself is missing', async () => {
  assert.deepEqual(await readerOf(() => ({ items: [1] })).list('/x'), { found: [1] })
  const forbidden = await readerOf(refuse('Forbidden', 'User "j" cannot get resource "pods"')).get('/x')
  assert.deepEqual(forbidden, { notShown: 'you may not get pods' })
  assert.throws(() => required(forbidden, 'pod d/web'), /pod d\/web is not shown: you may not get pods/)
  const absent = await readerOf(refuse('NotFound', 'no')).get('/x')
  assert.deepEqual(absent, {})
  assert.throws(
    () => required(absent, 'pod d/web'),
    (error) => error instanceof CommandError && error.exit === 'notFound',
  )
  assert.deepEqual(
    await viewOf(
      readerOf(() => ({ error: 'timeout' })),
      'noderoutes',
      'n1',
    ),
    { notShown: 'the kubelet of n1 does not answer: timeout' },
  )
})

test('SVC-06 skiff net takes NAME, NAMESPACE/NAME and the kind before it', () => {
  const kinds = /^(?:svc|services?)\//
  assert.deepEqual(namedObject('web', kinds, 'd'), { namespace: 'd', name: 'web' })
  assert.deepEqual(namedObject('svc/web', kinds, 'd'), { namespace: 'd', name: 'web' })
  assert.deepEqual(namedObject('shop/web', kinds, 'd'), { namespace: 'shop', name: 'web' })
  for (const text of ['', 'a/', '/a', 'a/b/c']) assert.throws(() => namedObject(text, kinds, 'd'), CommandError, text)
})

test('SVC-06 skiff net service and route print what a tenant or a node sends as part of its line, and each part that is not shown', () => {
  const escapeCode = '\u001b'
  const evil = `${escapeCode}[2Jx\nroutes: none`
  const service = printableData({
    service: 'd/web',
    spec: { ports: [{ name: evil, port: 80 }], clusterIPs: ['10.96.0.5'] },
    loadBalancer: [],
    endpoints: { notShown: 'you may not list endpointslices' },
    names: { found: [{ name: 'web', type: 'A' as const, server: '10.96.0.10', code: evil }] },
    nodes: {
      found: [
        { node: 'n1', found: { mode: 'nftables', rules: [{ place: 'service-ips' }, { place: evil, lines: [evil], connections: 2 }] } },
        { node: 'n2', notShown: 'no' },
      ],
    },
  })
  const text = describeService(service)
  assert.ok(!text.includes(escapeCode) && !/^routes/m.test(text), text)
  assert.match(text, /^endpoints: not shown: you may not list endpointslices$/m)
  assert.match(text, /^ {2}service-ips: MISSING in the kernel$/m)
  assert.match(text, /\(connections: 2\)$/m)
  assert.match(text, /^n2: not shown: no$/m)
  const routes = describeRoutes(
    printableData({
      found: [
        { node: 'n1', note: evil },
        { node: 'n2', mode: 'host-gw', routes: [{ cidr: evil, state: 'foreign' as const }] },
      ],
    }),
  )
  assert.ok(!routes.includes(escapeCode) && !/^routes/m.test(routes), routes)
  assert.match(routes, /FOREIGN$/m)
})
