/** Probes against servers of this process, and how the process of a probe is bounded. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import tls from 'node:tls'
import type { Exec, ExecOptions } from '#host/exec'
import { testCertificates } from '#testing/testCertificates'
import { networkProbes } from './networkProbe.ts'
import { certificateOf, probeNetwork, recordsOfEach } from './networkProbeProcess.ts'

const nothing = { servers: [], questions: [], connections: [] }

test('KUB-17 a probe tells a port that accepts connections from one that refuses, and shows a certificate that has expired or is of another name', async () => {
  const certificate = await testCertificates('CN=who', ['who'], -0.5)
  const plain = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  const secure = tls.createServer(certificate).listen(0, '127.0.0.1')
  await Promise.all([once(plain, 'listening'), once(secure, 'listening')])
  const portOf = (server: net.Server) => (server.address() as net.AddressInfo).port
  const free = net.createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const closed = portOf(free)
  free.close()
  const address = '127.0.0.1'
  const { connections } = await probeNetwork({
    ...nothing,
    connections: [
      { address, port: portOf(plain), protocol: 'tcp' },
      { address, port: closed, protocol: 'tcp' },
      { address, port: portOf(secure), protocol: 'tls', serverName: 'who' },
      { address, port: portOf(secure), protocol: 'tls', serverName: 'other' },
    ],
  })
  plain.close()
  secure.close()
  assert.deepEqual(
    connections.map(({ outcome, certificateSubject }) => [outcome, certificateSubject]),
    [
      ['connected', undefined],
      ['ECONNREFUSED', undefined],
      ['connected', 'who'],
      ['connected', 'who'],
    ],
  )
  assert.equal(connections[2]?.certificateNameFault, undefined)
  assert.match(connections[3]?.certificateNameFault ?? '', /other/)
  assert.ok(Date.parse(connections[2]?.certificateNotAfter ?? '') < Date.now())
})

test('KUB-17 a probe shows a certificate without its times when they cannot be read', () => {
  const certificate = { subject: { CN: 'who' }, valid_from: 'Bad time value', valid_to: 'Bad time value' } as unknown as tls.PeerCertificate
  const { certificateSubject, certificateNotBefore, certificateNotAfter } = certificateOf(certificate, '')
  assert.deepEqual([certificateSubject, certificateNotBefore, certificateNotAfter], ['who', undefined, undefined])
})

test('KUB-17 the answers of a probe have fewer records each when there are many, so that their text stays below the bound', () => {
  assert.deepEqual([1, 8, 24].map(recordsOfEach), [64, 64, 21])
})

test('KUB-17 the process of a probe enters the namespace, is bounded in time and output, and at most four run at once', async () => {
  const calls: (readonly [command: string, args: readonly string[], options: ExecOptions])[] = []
  const ends: (() => void)[] = []
  const exec = {
    run: (command: string, args: readonly string[], options: ExecOptions) => {
      calls.push([command, args, options])
      return new Promise((resolve) => ends.push(() => resolve({ code: 0, stdout: '{"answers":[],"connections":[]}', stderr: '', timedOut: false })))
    },
  } as unknown as Exec
  const probe = networkProbes(exec, ['node', 'skiff'])
  const running = Array.from({ length: 4 }, () => probe({ ...nothing, namespacePath: '/run/netns/a' }))
  await assert.rejects(probe(nothing), /try again later/)
  for (const end of ends) end()
  await Promise.all(running)
  const [command, args, { timeoutMs = 0, maxOutputBytes = 0, input }] = calls[0] ?? ['', [], {}]
  assert.deepEqual([command, ...args], ['nsenter', '--net=/run/netns/a', '--', 'node', 'skiff', 'network-probe'])
  assert.ok(timeoutMs > 0 && timeoutMs < 5000 && maxOutputBytes > 0 && maxOutputBytes < 2 ** 20)
  assert.equal(input, JSON.stringify(nothing))
  const again = probe(nothing)
  ends.at(-1)?.()
  assert.deepEqual(calls.at(-1)?.slice(0, 2), ['node', ['skiff', 'network-probe']])
  await again
})
