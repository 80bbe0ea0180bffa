/**
 * 100,000 mutated requests against every resource of discovery, in JSON, YAML, protobuf and all four kinds of patches, at the real TLS port of a
 * server in a process of its own: it answers each with less than 500, keeps its memory bounded, and still serves afterwards.
 * SKIFF_FUZZ_SEED replays a run, SKIFF_FUZZ_REQUESTS sets its size.
 */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:https'
import { test } from 'node:test'
import { connectHttp2, type Http2Connection, type LoadAnswer } from '../../bench/tools/http2Connection.ts'
import { Chance, fuzzRun } from './fuzz/chance.ts'
import { type FuzzRequest, randomRequest } from './fuzz/requests.ts'
import { startServerProcess } from './fuzz/serverProcess.ts'

const heapMegabytes = 512
const mostResidentBytes = 900 * 1024 * 1024
const parallel = 64
/** A client that cancels watches opens new connections now and then. */
const perConnection = 5_000
/** Enough to look at. */
const mostKinds = 20
/** No request may take longer, whatever it asks for. */
const answerWithinMs = 60_000

/** The plain HTTP/2 client waits for no window. */
const mostOverHttp2 = 32 * 1024

const { seed, requests } = fuzzRun(100_000)

test(`API-02 no request of a fuzzer is answered with 5xx, and none harms the server (SKIFF_FUZZ_SEED=${seed})`, { timeout: 600_000 }, async (t) => {
  const server = await startServerProcess(heapMegabytes)
  t.after(() => server.kill())
  const chance = new Chance(seed)
  const agent = new Agent({ keepAlive: true, maxSockets: 4, ca: server.ca, ...server.client })
  t.after(() => agent.destroy())
  const seen: Seen = { counts: new Map(), failures: new Map() }
  const connections = new Connections(() => connectHttp2({ host: '127.0.0.1', port: server.port, ca: server.ca, ...server.client }))
  const one = async () => {
    const made = randomRequest(chance)
    const overHttp1 = chance.once(10) || (made.body?.length ?? 0) > mostOverHttp2
    const ask = (asked: FuzzRequest) =>
      within(overHttp1 ? sendHttp1(agent, server.port, asked) : connections.use((connection) => send(connection, asked)), asked)
    const answer = await ask(made)
    // The answer to a HEAD has no words to judge it by: the same by GET has.
    note(seen, made, made.method === 'HEAD' && answer.status >= 500 ? await ask({ ...made, method: 'GET' }) : answer)
  }
  let left = requests
  const work = async () => {
    while (left-- > 0 && seen.failures.size < mostKinds) await one()
  }
  await Promise.all(Array.from({ length: parallel }, work)).finally(() => connections.close())
  const answers = [...seen.counts].sort().map(([status, count]) => `${status}: ${count}`)
  t.diagnostic(`answers: ${answers.join(', ')}; most memory: ${Math.round(server.peakBytes() / 1024 / 1024)} MiB`)
  assert.equal(seen.failures.size, 0, `${[...seen.failures.values()].join('\n')}\n${server.errors().slice(0, 6_000)}`)
  assert.ok(server.peakBytes() < mostResidentBytes, `${server.peakBytes()} bytes were resident`)
  agent.destroy()
  await server.stop()
})

/** Opens a new connection now and then; the old one is closed in the background after its last answer. */
class Connections {
  readonly #connect: () => Promise<Http2Connection>
  #current: { readonly connection: Promise<Http2Connection>; used: number; inFlight: number } | undefined

  constructor(connect: () => Promise<Http2Connection>) {
    this.#connect = connect
  }

  async use<T>(call: (connection: Http2Connection) => Promise<T>): Promise<T> {
    if (!this.#current || this.#current.used >= perConnection) this.#current = { connection: this.#connect(), used: 0, inFlight: 0 }
    const mine = this.#current
    mine.used++
    mine.inFlight++
    try {
      return await call(await mine.connection)
    } finally {
      if (--mine.inFlight === 0 && mine !== this.#current) (await mine.connection).close()
    }
  }

  async close(): Promise<void> {
    const connection = await this.#current?.connection
    connection?.close()
  }
}

interface Seen {
  readonly counts: Map<number, number>
  /** One of each kind, by what the server said. */
  readonly failures: Map<string, string>
}

function note({ counts, failures }: Seen, request: FuzzRequest, answer: LoadAnswer): void {
  counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
  if (answer.status < 500 || isExpected(request, answer)) return
  const kind = answer.body.replace(/"[^"]*"/g, '').slice(0, 120)
  failures.set(kind, `${answer.status} ${describe(request)}\n  ${answer.body.slice(0, 300)}`)
}

function send(connection: Http2Connection, { method, path, headers, body }: FuzzRequest): Promise<LoadAnswer> {
  const { accept = '', 'content-type': contentType, ...more } = headers
  return connection.request({ method, path, accept, contentType, headers: more, body, statusOnly: isWatch(path) })
}

/** A watch has no end to wait for. */
function isWatch(path: string): boolean {
  return /[?&]watch=|\/watch\//.test(path)
}

function sendHttp1(agent: Agent, port: number, { method, path, headers, body }: Omit<FuzzRequest, 'proxied'>): Promise<LoadAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, agent, method, path, headers: { ...headers, ...(body ? { 'content-length': body.length } : {}) } },
      (response) => {
        const status = response.statusCode ?? 0
        if (isWatch(path) && status < 300) {
          response.destroy()
          resolve({ status, bytes: 0, body: '' })
          return
        }
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          resolve({ status, bytes: bytes.length, body: bytes.subarray(0, 10_000).toString() })
        })
      },
    )
    // A kept connection may close under the request; then it goes out again on another.
    call.on('error', (error) => (call.reusedSocket ? resolve(sendHttp1(agent, port, { method, path, headers, body })) : reject(error)))
    call.end(body)
  })
}

/** What waits for an answer, in order: when the server hangs, the first one is to blame. */
const pending = new Set<FuzzRequest>()

async function within(answer: Promise<LoadAnswer>, request: FuzzRequest): Promise<LoadAnswer> {
  pending.add(request)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer; waiting: ${[...pending].map((one) => `\n${describe(one)}`)}`)), answerWithinMs)
  })
  try {
    return await Promise.race([answer, late])
  } catch (error) {
    throw new Error(`${String(error)}: ${describe(request)}`, { cause: error })
  } finally {
    clearTimeout(timer)
    pending.delete(request)
  }
}

/** Refusals that upstream answers with 500 or 504 too, because they leave the function named here as plain errors. */
const upstreamsOwn = [
  // apimachinery/pkg/util/managedfields/internal/structuredmerge.go Apply: fields that the schema does not know.
  /failed to create typed patch object/,
  // apiserver/pkg/storage/etcd3/store.go Create, ErrResourceVersionSetOnCreate.
  /resourceVersion should not be set on objects to be created/,
  // apiserver/pkg/endpoints/handlers/patch.go interpretStrategicMergePatchError passes these on: mergepatch ErrBadPatchType and
  // ErrNoMergeKey, strategicpatch validatePatchWithSetOrderList and sliceElementType.
  /unknown patch type: /,
  /does not contain declared merge key/,
  /The order in patch list|list element types are not identical/,
  // apiserver/pkg/storage/api_object_versioner.go ObjectResourceVersion, from registry/generic/registry/store.go Update.
  /strconv\.ParseUint: parsing /,
  // pkg/registry/core/service/storage/alloc.go allocIPs, NewInternalError: the fuzzer takes the only range away.
  /failed to allocate a serviceIP: range is full/,
  // pkg/util/node GetPreferredNodeAddress, from pkg/kubelet/client: a node without an address in its status.
  /no preferred addresses found/,
  // apiserver/pkg/storage/errors.go NewTooLargeResourceVersionError: a revision of the future is waited for, three seconds long.
  /Too large resource version/,
]

function isExpected({ proxied, path }: FuzzRequest, { status, body }: LoadAnswer): boolean {
  // Streams and proxies reach for kubelets and pods, of which there are none.
  if (proxied && (status === 502 || status === 503)) return true
  // A request with a very short timeout gets 504.
  if (status === 504 && /[?&]timeout=/.test(path)) return true
  return upstreamsOwn.some((words) => words.test(body))
}

function describe({ method, path, headers, body }: FuzzRequest): string {
  return `${method} ${path.slice(0, 400)} ${JSON.stringify(headers)} ${body ? `${body.length > 600 ? `${body.length} bytes, ` : ''}${JSON.stringify(body.subarray(0, 600).toString('latin1'))}` : ''}`
}
