/**
 * Somebody innocent: asks for one object every few milliseconds on one connection, whether or not the last answer has come, until standard input
 * ends. Then prints how long each answer took, in milliseconds, as JSON. Any answer but 200 counts as one that never came.
 */
import { connectHttp2 } from '../../../bench/tools/http2Connection.ts'

const everyMs = 20
const never = 60_000

const { port, ca, path, token } = JSON.parse(process.argv[2] ?? '{}') as { port: number; ca: string; path: string; token: string }
const connection = await connectHttp2({ host: '127.0.0.1', port, ca })
const asked: Promise<number>[] = []
const ask = async () => {
  const started = performance.now()
  const { status } = await connection.request({ method: 'GET', path, headers: { authorization: `Bearer ${token}` } }).catch(() => ({ status: 0 }))
  return status === 200 ? performance.now() - started : never
}
await ask()
process.stdout.write('ready\n')
const asking = setInterval(() => asked.push(ask()), everyMs)
process.stdin.resume()
process.stdin.on('end', async () => {
  clearInterval(asking)
  process.stdout.write(`${JSON.stringify(await Promise.all(asked))}\n`)
  connection.close()
})
