/** Takes a profile from a component's /debug/pprof (L4): the API server's process, or a kubelet through the API server. */
import type { Readable } from 'node:stream'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { HttpAnswer } from '#client/httpConnection'
import type { HttpTransport } from '#client/httpTransport'
import { CommandError } from '../exitCodes.ts'

export const profileTypes = ['cpu', 'heap'] as const
export type ProfileType = (typeof profileTypes)[number]

export interface ProfileRequest {
  readonly component: string
  readonly type: ProfileType
  readonly seconds: number
  /** A local cluster, where API server, controllers and scheduler are one process. */
  readonly isLocal: boolean
}

/** Pages of /debug/pprof. */
const pages = { cpu: 'profile', heap: 'heap' } as const
/** The answer may come so much later than the profile ends. */
const graceMs = 60_000
const mostBytes = 64 * 2 ** 20
const mostErrorBytes = 64 * 1024

const apiServers: ReadonlySet<string> = new Set(['apiserver', 'kube-apiserver'])
/** Components of the API server's process in a local cluster, and their ports elsewhere. */
const otherPorts: ReadonlyMap<string, number> = new Map([
  ['controller-manager', 10257],
  ['kube-controller-manager', 10257],
  ['scheduler', 10259],
  ['kube-scheduler', 10259],
])

/** @param path of {@link profilePath} @returns the compressed profile @throws CommandError saying what to do, ConnectionError */
export async function takeProfile(transport: HttpTransport, clock: Clock, path: string, request: ProfileRequest): Promise<Buffer> {
  using limit = deadlineScope({ clock, ms: request.seconds * 1000 + graceMs })
  const target = `${path}?seconds=${request.seconds}`
  const answer = await transport.forward({ method: 'GET', target, headers: { accept: '*/*' }, body: undefined }, limit.signal)
  if (answer.status === 200) return readBody(answer.body, mostBytes)
  throw await refusal(answer, request)
}

/** Where the API server answers with the profile. @throws CommandError for a component that it does not lead to */
export function profilePath({ component, type, isLocal }: ProfileRequest): string {
  const page = `/debug/pprof/${pages[type]}`
  const node = /^nodes?\/([^/]+)$/.exec(component)?.[1]
  if (node !== undefined) return `/api/v1/nodes/${encodeURIComponent(node)}/proxy${page}`
  if (apiServers.has(component)) return page
  const port = otherPorts.get(component)
  if (port === undefined)
    throw new CommandError('usage', `${component}: expected apiserver, controller-manager, scheduler or node/NAME`, {
      hint: 'kubectl get nodes lists the names',
    })
  if (isLocal) return page
  throw new CommandError('unmetPrerequisite', `the API server does not lead to ${component}, which is a process of its own`, {
    hint: `ask its port on its machine: https://127.0.0.1:${port}${page}`,
  })
}

async function refusal({ status, body }: HttpAnswer, { component, type }: ProfileRequest): Promise<CommandError> {
  const text = messageIn((await readBody(body, mostErrorBytes)).toString())
  const isNode = /^nodes?\//.test(component)
  if (status === 404 && isNode) {
    const isMissing = /not found$/.test(text) && text.includes('nodes ')
    return isMissing
      ? new CommandError('notFound', text, { hint: 'kubectl get nodes lists the names' })
      : new CommandError('unmetPrerequisite', `the kubelet of ${component} has no profiles`, {
          hint: 'a simulated node runs in the process of the API server: skiff debug profile apiserver',
        })
  }
  if (status === 404 || status === 405)
    return new CommandError('unmetPrerequisite', `${component} serves no profiles: ${text}`, {
      hint: isNode ? 'set enableProfilingHandler and enableDebuggingHandlers in its KubeletConfiguration' : 'start it without --profiling=false',
    })
  if (status === 401 || status === 403)
    return new CommandError('unmetPrerequisite', text, {
      hint: isNode
        ? 'the user needs the right to get nodes/proxy'
        : 'the user needs the right to get the path /debug/pprof/*, as a rule with nonResourceURLs gives it',
    })
  if (status === 500 && text.includes('already in use'))
    return new CommandError('conflict', `another ${type} profile of ${component} is being taken`, { hint: 'wait until it ends and run the command again' })
  return new CommandError('internal', `${component} answers ${status}: ${text}`)
}

/** The message of a Status, or the text itself. */
function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    return typeof message === 'string' ? message : text.trim()
  } catch {
    return text.trim()
  }
}

async function readBody(body: Readable, limit: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of body) {
    length += (part as Buffer).length
    if (length > limit) throw new CommandError('internal', `the answer is longer than ${limit} bytes`, { hint: 'take a shorter profile' })
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}
