/**
 * A tenant who asks as fast as answers come, in a process of its own: `flood.ts '{"address":…,"path":…,"headers":…}'`. Says "ready" when it has
 * connections; floods from each line of input to the next, and then prints how often each status was the answer.
 */
import { createInterface } from 'node:readline'
import { connectHttp2, type Http2Connection, type ServerAddress } from './http2Connection.ts'

export interface FloodTarget {
  readonly address: ServerAddress
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** A connection begins eight requests per turn of the server's loop: more than all seats and queues of a flow need many. */
const connections = 80
const inFlightEach = 20

const { address, path, headers } = JSON.parse(process.argv[2] ?? '') as FloodTarget
const open = await Promise.all(Array.from({ length: connections }, () => connectHttp2(address)))
let counts: Record<number, number> = {}
let isOn = false
let over: Promise<unknown> = Promise.resolve()

async function ask(connection: Http2Connection): Promise<void> {
  while (isOn) {
    const { status } = await connection.request({ method: 'GET', path, headers })
    counts[status] = (counts[status] ?? 0) + 1
  }
}

console.log('ready')
for await (const _ of createInterface({ input: process.stdin })) {
  isOn = !isOn
  if (isOn) over = Promise.all(open.flatMap((connection) => Array.from({ length: inFlightEach }, () => ask(connection))))
  else {
    await over
    console.log(JSON.stringify(counts))
    counts = {}
  }
}
for (const connection of open) connection.close()
