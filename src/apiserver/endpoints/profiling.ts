/**
 * /debug/pprof (L3): profiles of this process, in V8's forms, not Go's: /profile is a CPU profile (.cpuprofile), /heap a sampling profile of
 * what was allocated meanwhile and is alive (.heapprofile); both open in Chrome's DevTools. `seconds` is the duration, by default 30. Neither
 * stops the server. Off with --profiling=false. Upstream: apiserver/pkg/server/routes/profiling.go.
 */
import { Session } from 'node:inspector/promises'
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { type Answer, textAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'

const root = '/debug/pprof'
const defaultSeconds = 30

/** Records a profile until `done` and gives it. */
type Record = (session: Session, done: () => Promise<void>) => Promise<object>

const profiles: Readonly<{ [name: string]: { readonly title: string; readonly extension: string; readonly record: Record } }> = bareMap({
  profile: {
    title: 'CPU time',
    extension: 'cpuprofile',
    async record(session, done) {
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      await done()
      return (await session.post('Profiler.stop')).profile
    },
  },
  heap: {
    title: 'Allocations that are alive, sampled',
    extension: 'heapprofile',
    async record(session, done) {
      await session.post('HeapProfiler.startSampling')
      await done()
      return (await session.post('HeapProfiler.stopSampling')).profile
    },
  },
})

/** Answers the paths below /debug/pprof; undefined for others and for profiles that there are not. */
export function profiling(clock: Clock): (request: ServerRequest) => Promise<Answer> | Answer | undefined {
  const busy = new Set<string>()
  return (request) => {
    const { path } = request
    if (!path.startsWith(root)) return undefined
    if (path === root) return { type: 'bytes', status: 302, contentType: 'text/plain', bytes: Buffer.alloc(0), headers: { location: `${root}/` } }
    if (path === `${root}/`) return textAnswer(200, index)
    const name = path.slice(root.length + 1)
    const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
    return profile && record(request, clock, busy, name, profile)
  }
}

const index = `${Object.entries(profiles)
  .map(([name, { title, extension }]) => `${root}/${name}?seconds=${defaultSeconds}\t${title} (.${extension})`)
  .join('\n')}\n`

async function record(
  request: ServerRequest,
  clock: Clock,
  busy: Set<string>,
  name: string,
  { extension, record: run }: (typeof profiles)[string],
): Promise<Answer> {
  if (busy.has(name)) return textAnswer(500, `Could not enable ${name} profiling: it is already in use\n`)
  busy.add(name)
  const session = new Session()
  session.connect()
  try {
    const profile = await run(session, () => clock.sleep(secondsOf(request) * 1000, request.cancellation.signal))
    const headers = { 'content-disposition': `attachment; filename="${name}.${extension}"`, 'x-content-type-options': 'nosniff' }
    return { type: 'bytes', status: 200, contentType: 'application/json', bytes: Buffer.from(JSON.stringify(profile)), headers }
  } finally {
    session.disconnect()
    busy.delete(name)
  }
}

/** As upstream, what is no positive number means the default. */
function secondsOf({ query }: ServerRequest): number {
  const text = query.get('seconds') ?? ''
  const seconds = /^\+?\d+$/.test(text) ? Number(text) : 0
  return seconds > 0 ? seconds : defaultSeconds
}
