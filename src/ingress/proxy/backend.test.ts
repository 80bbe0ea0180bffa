import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ClientRequest } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { Backend } from './backend.ts'
import { defaultLimits } from './config.ts'
import { TimedOut, whenConnected } from './forward.ts'
import { passesOf, requestHeaders } from './headers.ts'
import type { ProxyDeps } from './proxyDeps.ts'

const endpoint = (port: number) => ({ ip: '10.0.0.1', port })
const ports = (backend: Backend, count: number) => Array.from({ length: count }, () => backend.pick()?.port)

test('ING-02 endpoints take turns; one that refused a connection is left out for a second while there are others', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const backend = new Backend(clock)
  assert.equal(backend.pick(), undefined)
  backend.setEndpoints([1, 2, 3].map(endpoint))
  assert.deepEqual(ports(backend, 4), [1, 2, 3, 1])
  backend.avoid(endpoint(2))
  assert.ok(!ports(backend, 6).includes(2))
  await clock.advance(1001)
  assert.ok(ports(backend, 3).includes(2))
  backend.setEndpoints([endpoint(2)])
  backend.avoid(endpoint(2))
  assert.deepEqual(ports(backend, 2), [2, 2])
  backend.setEndpoints([1, 2].map(endpoint))
  assert.deepEqual([backend.pick([endpoint(1)])?.port, backend.pick([endpoint(1)])?.port], [2, 2])
})

test('ING-02 a request fails when its endpoint is not connected in time', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const socket = Object.assign(new EventEmitter(), { connecting: true })
  const failures: Error[] = []
  const outgoing = Object.assign(new EventEmitter(), { setTimeout: () => {}, destroy: (error: Error) => failures.push(error) })
  let connected = 0
  const deps = { clock, limits: defaultLimits } as unknown as ProxyDeps
  whenConnected(deps, socket as unknown as Socket, outgoing as unknown as ClientRequest, () => connected++)
  await clock.advance(defaultLimits.connectTimeoutMs - 1)
  assert.equal(failures.length, 0)
  await clock.advance(1)
  assert.ok(failures[0] instanceof TimedOut)
  assert.equal(connected, 0)
})

test('ING-02 each pass through a proxy adds one loop token, and all are counted', () => {
  const origin = { remoteAddress: '1.2.3.4', authority: 'a.test', askedAuthority: 'a.test', scheme: 'http', port: 80 } as const
  let raw: string[] = ['CDN-Loop', 'other; x']
  for (let i = 0; i < 3; i++) raw = requestHeaders(raw, origin, 'none')
  const at = raw.indexOf('CDN-Loop')
  assert.deepEqual([raw[at + 1], passesOf(raw[at + 1])], ['other; x, skiff-ingress, skiff-ingress, skiff-ingress', 3])
})
