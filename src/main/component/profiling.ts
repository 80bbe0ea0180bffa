/**
 * /debug/pprof (L5): profiles of this process as `go tool pprof` and Speedscope read them: gzipped profile.proto. With `format=v8` CPU and heap profiles are
 * V8's own (.cpuprofile, .heapprofile), for Chrome's DevTools. `seconds` is the duration, by default 30. No profile stops the process. Off with
 * --profiling=false. Upstream: apiserver/pkg/server/routes/profiling.go.
 */
import { Session } from 'node:inspector/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Answer, textAnswer } from '#apiserver/core/answer'
import type { Page } from '#apiserver/core/page'
import type { ServerRequest } from '#apiserver/core/request'
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import type { HeapProfile, SampledProfile } from './pprofProfile.ts'

const root = '/debug/pprof'
const defaultSeconds = 30
const compress = promisify(gzip)

/** A profile in V8's form, and as samples. */
interface Recorded {
  readonly v8: object
  readonly sampled: SampledProfile
}

interface Recorder {
  readonly title: string
  /** Of V8's form. */
  readonly extension: string
  /** Records until `done`. */
  record(session: Session, done: () => Promise<void>): Promise<Recorded>
}

const recorders: Readonly<{ [name: string]: Recorder }> = bareMap({
  profile: {
    title: 'CPU time',
    extension: 'cpuprofile',
    async record(session, done) {
      const { sampledCpu } = await import('./pprofProfile.ts')
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      await done()
      const { profile } = await session.post('Profiler.stop')
      return { v8: profile, sampled: sampledCpu(profile) }
    },
  },
  heap: {
    title: 'What was allocated in that time and is alive, sampled',
    extension: 'heapprofile',
    async record(session, done) {
      const { sampledHeap } = await import('./pprofProfile.ts')
      await session.post('HeapProfiler.startSampling')
      await done()
      const { profile } = await session.post('HeapProfiler.stopSampling')
      return { v8: profile, sampled: sampledHeap(profile as unknown as HeapProfile) }
    },
  },
})

/** The pages below /debug/pprof. */
export function profiling(clock: Clock): Page {
  const busy = new Set<string>()
  const handle: Page['handle'] = (request) => {
    const { path } = request
    if (path === root) return { type: 'bytes', status: 302, contentType: 'text/plain', bytes: Buffer.alloc(0), headers: { location: `${root}/` } }
    const name = path.slice(root.length + 1)
    const recorder = Object.hasOwn(recorders, name) ? recorders[name] : undefined
    return recorder ? record(request, clock, busy, name, recorder) : plainPage(request, name, clock)
  }
  return { prefix: root, handle }
}

function plainPage(request: ServerRequest, name: string, clock: Clock): Promise<Answer> | Answer | undefined {
  switch (name) {
    case '':
      return textAnswer(200, index)
    case 'goroutine':
      return resources(request, clock)
    case 'cmdline':
      return textAnswer(200, process.argv.join('\0'))
    case 'symbol':
      // The profiles name their functions.
      return textAnswer(200, 'num_symbols: 0\n')
    case 'trace':
      return textAnswer(501, 'V8 has no execution traces in the form that go tool trace reads: take a CPU profile, or send spans with --tracing-config-file\n')
    default:
      return undefined
  }
}

const index = `${[
  ...Object.entries(recorders).map(([name, { title, extension }]) => [`${name}?seconds=${defaultSeconds}`, `${title} (&format=v8: .${extension})`]),
  ['goroutine?debug=1', 'What this process waits for: sockets, timers and threads, in place of goroutines'],
  ['cmdline', 'The command line'],
]
  .map(([path, title]) => `${root}/${path}\t${title}`)
  .join('\n')}\n`

async function record(request: ServerRequest, clock: Clock, busy: Set<string>, name: string, { extension, record: run }: Recorder): Promise<Answer> {
  if (busy.has(name)) return textAnswer(500, `Could not enable ${name} profiling: it is already in use\n`)
  busy.add(name)
  const session = new Session()
  session.connect()
  try {
    const { v8, sampled } = await run(session, () => clock.sleep(secondsOf(request) * 1000, request.cancellation.signal))
    if (request.query.get('format') !== 'v8') return await pprofAnswer(name, sampled, clock)
    return download(`${name}.${extension}`, 'application/json', Buffer.from(JSON.stringify(v8)))
  } finally {
    session.disconnect()
    busy.delete(name)
  }
}

async function pprofAnswer(name: string, sampled: SampledProfile, clock: Clock): Promise<Answer> {
  const { encodeProfile } = await import('./pprofProfile.ts')
  return download(name, 'application/octet-stream', await compress(encodeProfile(sampled, clock.now())))
}

function download(file: string, contentType: string, bytes: Buffer): Answer {
  const headers = { 'content-disposition': `attachment; filename="${file}"`, 'x-content-type-options': 'nosniff' }
  return { type: 'bytes', status: 200, contentType, bytes, headers }
}

/** What keeps the event loop alive, by kind: as text with `debug`, else as a profile. */
async function resources({ query }: ServerRequest, clock: Clock): Promise<Answer> {
  const { sampledResources, resourcesText } = await import('./pprofProfile.ts')
  const kinds = process.getActiveResourcesInfo()
  if (Number(query.get('debug') ?? 0) > 0) return textAnswer(200, resourcesText(kinds))
  return pprofAnswer('goroutine', sampledResources(kinds), clock)
}

/** As upstream, what is no positive number means the default. */
function secondsOf({ query }: ServerRequest): number {
  const text = query.get('seconds') ?? ''
  const seconds = /^\+?\d+$/.test(text) ? Number(text) : 0
  return seconds > 0 ? seconds : defaultSeconds
}
