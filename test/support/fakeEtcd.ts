/**
 * A server that speaks etcd's API for tests of what a real member cannot be made to do: another version, another cluster, a watch that is not
 * registered. It keeps no keys.
 */
import { loadPackageDefinition, Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition, type sendUnaryData } from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { etcdProto } from '#grpc/proto/etcd'
import { parseProto } from '#grpc/protoText'

export interface WatchRequest {
  readonly createRequest?: { readonly key: Buffer; readonly rangeEnd: Buffer; readonly startRevision: string } | null
  readonly progressRequest?: object | null
}

/** One watch that a client has opened. */
export interface FakeWatch {
  readonly requests: readonly WatchRequest[]
  send(response: object): void
  end(): void
}

export interface FakeEtcd {
  readonly url: string
  /** Names of the methods that were called, in their order, without the greetings. */
  readonly calls: readonly string[]
  readonly watches: readonly FakeWatch[]
  stop(): void
}

export interface FakeEtcdOptions {
  readonly version: string
  readonly clusterId?: string
  readonly revision?: number
  /** What every range holds. */
  readonly kvs?: readonly { readonly key: Buffer; readonly value: Buffer; readonly lease?: string }[]
  /** Default: a free one. */
  readonly port?: number
}

type Answer = sendUnaryData<object>

export async function startFakeEtcd({ version, clusterId = '1', revision = 1, kvs = [], port = 0 }: FakeEtcdOptions): Promise<FakeEtcd> {
  const options = { defaults: true, longs: String, enums: String, keepCase: false }
  const { KV, Watch, Maintenance } = loadPackageDefinition(fromJSON(parseProto(etcdProto) as never, options)).etcdserverpb as unknown as Record<
    string,
    { service: ServiceDefinition }
  >
  const header = { clusterId, revision }
  const calls: string[] = []
  const watches: FakeWatch[] = []
  const answer = (name: string, response: object) => (_: unknown, done: Answer) => {
    calls.push(name)
    done(null, response)
  }
  const server = new Server()
  server.addService(
    Maintenance?.service as ServiceDefinition,
    {
      Status: (_: unknown, done: Answer) => done(null, { header, version, dbSize: 1, dbSizeInUse: 1 }),
    } as never,
  )
  server.addService(
    KV?.service as ServiceDefinition,
    {
      Range: answer('Range', { header, kvs: kvs.map((kv) => ({ createRevision: 1, modRevision: 1, version: 1, ...kv })), count: kvs.length }),
      Txn: answer('Txn', { header, succeeded: true, responses: [{ responsePut: {} }] }),
    } as never,
  )
  server.addService(
    Watch?.service as ServiceDefinition,
    {
      Watch: (call: ServerDuplexStream<WatchRequest, object>) => {
        const requests: WatchRequest[] = []
        call.on('data', (request: WatchRequest) => requests.push(request))
        call.on('error', () => {})
        watches.push({ requests, send: (response) => call.write({ header, ...response }), end: () => call.end() })
      },
    } as never,
  )
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, found) => (error ? reject(error) : resolve(found)))
  })
  return { url: `http://127.0.0.1:${bound}`, calls, watches, stop: () => server.forceShutdown() }
}
