/** A closed loop of load: so many requests in flight, over a few connections, until all are answered. */
import { connectHttp2, type Http2Connection, type LoadAnswer, type LoadRequest, type ServerAddress } from './http2Connection.ts'

export interface LoadResult {
  readonly operations: number
  readonly seconds: number
  readonly perSecond: number
  /** Milliseconds from issuing a request to the end of its answer. */
  readonly latencies: readonly number[]
}

export interface LoadClient {
  /** One request that must succeed; its body is kept. */
  ask(method: string, path: string, body?: object, contentType?: string): Promise<LoadAnswer>
  /** Issues `make(0)` … `make(count - 1)`, `inFlight` at a time. `worker` numbers the places in flight. Every answer must be a success. */
  loop(
    count: number,
    inFlight: number,
    make: (index: number, worker: number) => LoadRequest,
    done?: (answer: LoadAnswer, worker: number) => void,
  ): Promise<LoadResult>
  /** One more connection, for watches. */
  connect(): Promise<Http2Connection>
  close(): void
}

const connections = 4

export async function createLoadClient(address: ServerAddress): Promise<LoadClient> {
  const open: Http2Connection[] = []
  const connect = async () => {
    const connection = await connectHttp2(address)
    open.push(connection)
    return connection
  }
  const pool = await Promise.all(Array.from({ length: connections }, connect))
  const checked = async (connection: Http2Connection, request: LoadRequest) => {
    const answer = await connection.request(request)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw new Error(`${request.method} ${request.path}: ${answer.status} ${answer.body.slice(0, 500)}`)
  }
  return {
    ask: (method, path, body, contentType = 'application/json') =>
      checked(pool[0]!, { method, path, keep: true, ...(body ? { body: Buffer.from(JSON.stringify(body)), contentType } : {}) }),
    loop: async (count, inFlight, make, done) => {
      const latencies = new Array<number>(count)
      let next = 0
      const work = async (worker: number) => {
        for (let index = next++; index < count; index = next++) {
          const started = performance.now()
          const answer = await checked(pool[index % connections]!, make(index, worker))
          latencies[index] = performance.now() - started
          done?.(answer, worker)
        }
      }
      const started = performance.now()
      await Promise.all(Array.from({ length: Math.min(inFlight, count) }, (_, worker) => work(worker)))
      const seconds = (performance.now() - started) / 1000
      return { operations: count, seconds, perSecond: count / seconds, latencies }
    },
    connect,
    close: () => {
      for (const connection of open) connection.close()
    },
  }
}
