/**
 * A client that does not attack: it gets one object every few milliseconds on one connection, without waiting for the last answer. For each line of
 * standard input it prints how long each answer since the last line took, in milliseconds, as JSON. An answer other than 200 counts as missing.
 */
import { createInterface } from 'node:readline'
import { connectHttp2 } from '../../../bench/tools/http2Connection.ts'

const everyMs = 20
const never = 60_000

const { port, ca, path, token } = JSON.parse(process.argv[2] ?? '{}') as { port: number; ca: string; path: string; token: string }
const connection = await connectHttp2({ host: '127.0.0.1', port, ca })
let asked: Promise<number>[] = []
const ask = async () => {
  const started = performance.now()
  const { status } = await connection.request({ method: 'GET', path, headers: { authorization: `Bearer ${token}` } }).catch(() => ({ status: 0 }))
  return status === 200 ? performance.now() - started : never
}
await ask()
process.stdout.write('ready\n')
const asking = setInterval(() => asked.push(ask()), everyMs)
const lines = createInterface({ input: process.stdin })
lines.on('line', async () => {
  // At least one that began when it was over.
  const all = [...asked, ask()]
  asked = []
  process.stdout.write(`${JSON.stringify(await Promise.all(all))}\n`)
})
lines.on('close', () => {
  clearInterval(asking)
  connection.close()
})
