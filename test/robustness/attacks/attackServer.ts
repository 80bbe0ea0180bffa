/**
 * The server that is attacked, in a process of its own: configured by flags with the whole of its security, on the memory store. Its argument is
 * AttackServerOptions as JSON. Prints a line of JSON when it serves, and one for each line that it is sent: what its memory holds once all
 * garbage is gone. Ends when its standard input does.
 */
import { createInterface } from 'node:readline'
import { testCertificates } from '#testing/testCertificates'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import type { AttackServerOptions } from './serverUnderAttack.ts'

const { flags, headersTimeoutMs, maxInFlight } = JSON.parse(process.argv[2] ?? '{}') as AttackServerOptions
const collectGarbage = globalThis.gc ?? (() => assertExposed())
const api = await startServerWithFlags(flags, { maxInFlight })
const serving = await testCertificates()
const listener = await api.server.listen({ host: '127.0.0.1', port: 0, headersTimeoutMs, tls: serving })
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`)
const lines = createInterface({ input: process.stdin })
lines.on('line', async () => {
  // What the store keeps of earlier revisions is no garbage, but would go within minutes.
  await api.store.compact(await api.store.latestRevision()).catch(() => undefined)
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  say({ heldBytes: heapUsed + external })
})
lines.on('close', async () => {
  await listener.close()
  await api.close()
})
say({ port: listener.port, ca: serving.cert })

function assertExposed(): never {
  throw new Error('the process was started without --expose-gc')
}
