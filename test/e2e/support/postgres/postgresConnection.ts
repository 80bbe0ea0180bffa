/** One connection to PostgreSQL by the simple query protocol (tests only): enough to commit, and to read what is committed. Trust authentication. */
import { once } from 'node:events'
import net from 'node:net'

export interface QueryResult {
  /** As in `INSERT 0 1`: the server sends it after the commit is on its disk. */
  readonly tag: string
  readonly rows: readonly (readonly string[])[]
}

interface Waiting {
  tag: string | undefined
  failure: string | undefined
  readonly rows: string[][]
  settle(error?: Error): void
}

export class PostgresConnection {
  readonly #socket: net.Socket
  #received: Buffer = Buffer.alloc(0)
  #waiting: Waiting | undefined
  #closed: Error | undefined

  private constructor(socket: net.Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#end(error))
    socket.on('close', () => this.#end(new Error('the connection was closed')))
  }

  /** @throws Error when the server cannot be reached within the time, or refuses, as it does while it starts and recovers */
  static async open(host: string, port: number, timeoutMs: number): Promise<PostgresConnection> {
    const connection = new PostgresConnection(net.connect({ host, port, noDelay: true }))
    const parameters = Buffer.from('user\0postgres\0database\0postgres\0\0')
    const head = Buffer.alloc(8)
    head.writeInt32BE(head.length + parameters.length)
    head.writeInt32BE(3 << 16, 4)
    await connection.#ask(Buffer.concat([head, parameters]), timeoutMs)
    return connection
  }

  query(text: string, timeoutMs: number): Promise<QueryResult> {
    const body = Buffer.from(`${text}\0`)
    const head = Buffer.alloc(5)
    head.write('Q')
    head.writeInt32BE(4 + body.length, 1)
    return this.#ask(Buffer.concat([head, body]), timeoutMs)
  }

  async close(): Promise<void> {
    if (this.#socket.destroyed) return
    const closed = once(this.#socket, 'close')
    this.#socket.destroy()
    await closed
  }

  /** An answer that began with its tag counts, though the connection breaks then: the server has committed. */
  #ask(message: Buffer, timeoutMs: number): Promise<QueryResult> {
    if (this.#closed) return Promise.reject(this.#closed)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#socket.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
      const waiting: Waiting = {
        ...{ tag: undefined, failure: undefined, rows: [] },
        settle: (error) => {
          clearTimeout(timer)
          this.#waiting = undefined
          const { tag, failure, rows } = waiting
          if (failure !== undefined) reject(new Error(failure))
          else if (error && tag === undefined) reject(error)
          else resolve({ tag: tag ?? '', rows })
        },
      }
      this.#waiting = waiting
      this.#socket.write(message)
    })
  }

  #end(error: Error): void {
    this.#closed ??= error
    this.#waiting?.settle(error)
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      if (this.#received.length < 5) return
      const end = 1 + this.#received.readInt32BE(1)
      if (this.#received.length < end) return
      const type = this.#received.toString('latin1', 0, 1)
      const body = this.#received.subarray(5, end)
      this.#received = this.#received.subarray(end)
      this.#message(type, body)
    }
  }

  #message(type: string, body: Buffer): void {
    const waiting = this.#waiting
    if (type === 'R' && body.readInt32BE(0) !== 0) this.#socket.destroy(new Error('the server demands a password'))
    if (!waiting) return
    if (type === 'D') waiting.rows.push(columnsOf(body))
    else if (type === 'C') waiting.tag = body.toString('utf8', 0, body.length - 1)
    else if (type === 'E') waiting.failure = messageOf(body)
    else if (type === 'Z') waiting.settle()
  }
}

function columnsOf(body: Buffer): string[] {
  const columns: string[] = []
  let at = 2
  for (let left = body.readInt16BE(0); left > 0; left--) {
    const length = Math.max(0, body.readInt32BE(at))
    columns.push(body.toString('utf8', at + 4, at + 4 + length))
    at += 4 + length
  }
  return columns
}

/** Fields are a letter and a text each; M is the message. */
function messageOf(body: Buffer): string {
  const fields = body.toString('utf8').split('\0')
  return fields.find((field) => field.startsWith('M'))?.slice(1) ?? 'an error without a message'
}
