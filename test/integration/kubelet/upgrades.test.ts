/** Upgrade requests at the kubelet's port: a refused one closes its connection, and requests pipelined behind it are not read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { noLog } from '#base/log'
import { kubeletConfig } from '#kubelet/core/config'
import type { KubeletView } from '#kubelet/core/kubeletView'
import type { KubeletAuth } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createAuthority, issueCertificate } from '#main/pki/certificates'
import { realClock } from '#testing/realClock'

const next = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'

interface Served {
  readonly authorized: string[]
  /** All bytes received until the server closes the connection. The client asks once more before it closes, too. */
  send(text: string): Promise<string>
}

async function withServer(may: (subresource: string) => boolean, run: (served: Served) => Promise<void>): Promise<void> {
  const now = Date.now()
  const ca = await createAuthority('test', now, 1)
  const serving = await issueCertificate(ca, { commonName: 'node', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, now)
  const person = await issueCertificate(ca, { commonName: 'ann', usage: 'client', validDays: 1 }, now)
  const authorized: string[] = []
  const auth: KubeletAuth = {
    anonymous: false,
    authenticateToken: async () => undefined,
    authorize: async (_user, { subresource }) => {
      authorized.push(subresource)
      return may(subresource)
    },
  }
  const view = { config: kubeletConfig({ nodeName: 'n1' }), pods: () => [], pod: () => undefined, probeMetrics: () => [] } as unknown as KubeletView
  const server = createKubeletServer(
    { view, auth, clock: realClock, log: noLog, metricFamilies: () => [] },
    { address: '127.0.0.1', port: 0, ...serving, clientCa: ca.cert },
  )
  const stop = new AbortController()
  const running = server.run(stop.signal)
  const port = await server.listening
  const send = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const options = { host: '127.0.0.1', port, ca: ca.cert, ...person, allowHalfOpen: true }
      const socket = connect(options, () => socket.write(text))
      let received = ''
      socket.on('data', (chunk) => {
        received += chunk
      })
      socket.on('end', () => socket.end(next))
      socket.on('error', () => {})
      socket.on('close', () => resolve(received))
      setTimeout(() => reject(new Error(`the connection is still open after ${received}`)), 15_000).unref()
    })
  try {
    await run({ authorized, send })
  } finally {
    stop.abort()
    await running
  }
}

const upgradeHead = (path: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n${more}\r\n`

test('KUB-17 a refused upgrade ends its connection, and a request pipelined behind it is not read', async () => {
  const cases: readonly (readonly [head: string, status: RegExp])[] = [
    [upgradeHead('/exec/a/b/c?command=id&output=1'), /^HTTP\/1\.1 404 /],
    [upgradeHead('/portForward/a/b'), /^HTTP\/1\.1 404 /],
    [upgradeHead('/metrics'), /^HTTP\/1\.1 404 /],
    [upgradeHead('/exec/a/b/c?command=id'), /^HTTP\/1\.1 400 /],
    [upgradeHead('/exec/a/b/c?command=id&output=1', 'Content-Length: 3\r\n'), /^HTTP\/1\.1 400 /],
    [upgradeHead('/exec/a/b/c?command=id&output=1', 'Transfer-Encoding: chunked\r\n'), /^HTTP\/1\.1 400 /],
  ]
  await withServer(
    () => true,
    async ({ send }) => {
      for (const [head, status] of cases) {
        const received = await send(head + next)
        assert.match(received, status)
        assert.equal(received.split('HTTP/1.1 ').length, 2, `one answer: ${received}`)
      }
    },
  )
})

test('AUZ-09 the path is authorized as the routes read it: encoded letters and empty segments do not turn metrics into proxy', async () => {
  await withServer(
    (subresource) => subresource === 'proxy',
    async ({ authorized, send }) => {
      for (const path of ['/metrics', '/%6detrics', '/.//metrics', '/.//%6detrics/']) {
        authorized.length = 0
        assert.match(await send(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`), /^HTTP\/1\.1 403 /, path)
        assert.deepEqual(authorized, ['metrics'], path)
      }
    },
  )
})
