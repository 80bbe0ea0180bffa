/** A client trusts a server only when the named authority signed its certificate for the requested name. */
import assert from 'node:assert/strict'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { deadlineScope } from '#base/abortScope'
import { VirtualClock } from '#base/virtualClock'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { createHttpTransport } from './httpTransport.ts'

test('SDR-07 CVE-2025-9708 a server that the authority of the kubeconfig has not signed gets no credential', async () => {
  const [right, wrong] = await Promise.all([testCertificates(), testCertificates()])
  for (const { serving, ca, isTrusted, host = '127.0.0.1' } of [
    { serving: right, ca: right.cert, isTrusted: true },
    { serving: right, ca: wrong.cert, isTrusted: false },
    { serving: right, ca: undefined, isTrusted: false },
    // The certificate is right, but not for this address.
    { serving: right, ca: right.cert, isTrusted: false, host: '127.0.0.2' },
  ]) {
    const seen: string[] = []
    const server = https.createServer({ cert: serving.cert, key: serving.key }, (request, response) => {
      seen.push(String(request.headers.authorization))
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    const { port } = server.address() as AddressInfo
    const tls = ca === undefined ? {} : { ca }
    const transport = createHttpTransport({ server: `https://${host}:${port}`, tls, bearerToken: async () => 'token', clock: new VirtualClock() })
    using limit = deadlineScope({ clock: realClock, ms: 10_000 })
    const asked = transport.request({ method: 'GET', path: '/version' }, limit.signal)
    if (isTrusted) await asked
    else await assert.rejects(asked, /certificate/)
    assert.deepEqual(seen, isTrusted ? ['Bearer token'] : [])
    await transport.close()
    server.closeAllConnections()
    server.close()
  }
})
