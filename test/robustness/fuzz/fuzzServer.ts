/**
 * The server that is fuzzed, in a process of its own with a memory cap: the real one with its real security, on the memory store. Prints one
 * line of JSON when it serves; ends when its standard input does. Its arguments: the request timeout and the idle timeout of connections, in
 * milliseconds. Errors are logged to standard error.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createSecurity } from '#apiserver/security'
import type { Logger } from '#base/log'
import { seededRandom } from '#base/random'
import { createTextLog } from '#main/textLog'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'

const compactEveryMs = 1_000
/** History that is kept: enough for continue tokens to live and to die. */
const keptRevisions = 500

const random = seededRandom(1)
const serviceAccountKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const store = createMemoryStore({ clock: realClock })
const token = 'fuzz-admin'
const text = createTextLog({ write: (line) => process.stderr.write(line), verbosity: 0, nowMs: () => realClock.now(), pid: process.pid })
const log: Logger = {
  ...text,
  error: (error, message, fields) => text.error(error, message, { ...fields, at: error instanceof Error ? error.stack?.split('\n').slice(1, 3).join('') : '' }),
}
const api = await startTestApiServer({
  store,
  minWatchTimeoutMs: 200,
  requestTimeoutMs: Number(process.argv[2]),
  deps: (registry) => {
    const security = createSecurity({ reader: registry.reader, clock: realClock, random, serviceAccountKey })
    const user = { name: token, groups: ['system:masters', 'system:authenticated'] }
    const byToken = {
      name: 'token',
      authenticate: ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
        headers.authorization === `Bearer ${token}` ? ({ decision: 'authenticated', user } as const) : undefined,
    }
    return { ...security, log, authenticators: [byToken, ...security.authenticators] }
  },
})
for (const name of ['fuzz', 'other']) await api.client.transport.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } })
const [serving, client] = [await testCertificates(), await testCertificates('CN=fuzz-client, O=system:masters')]
const listener = await api.server.listen({ host: '127.0.0.1', port: 0, idleTimeoutMs: Number(process.argv[3]), tls: { ...serving, clientCa: client.cert } })
const compacting = setInterval(async () => {
  const revision = (await store.latestRevision()) - keptRevisions
  if (revision > 1) void store.compact(revision).catch(() => undefined)
}, compactEveryMs)
process.stdout.write(`${JSON.stringify({ port: listener.port, ca: serving.cert, client, token })}\n`)
process.stdin.resume()
process.stdin.on('end', async () => {
  clearInterval(compacting)
  await listener.close()
  await api.close()
})
