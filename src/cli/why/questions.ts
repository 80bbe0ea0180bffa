/** The requests that `skiff why` and `skiff net` send, with the credentials of the administrator or of a kubeconfig (L4). A refusal becomes an error with the server's message. */
import type { APIResource, APIResourceList, Status } from '#api/gen/types/meta.v1'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'

/** One question: a GET, or with a body a POST. */
export type Ask = (path: string, body?: unknown) => Promise<{ readonly status: number; readonly body: string } | undefined>

/** Asks as the user of a transport. */
export function askOver(transport: Transport): Ask {
  return async (path, body) => {
    try {
      const { pathname, searchParams } = new URL(path, 'http://cluster')
      const answer = await transport.request({ method: body === undefined ? 'GET' : 'POST', path: pathname, query: Object.fromEntries(searchParams), body })
      return { status: answer.status, body: JSON.stringify(answer.body) }
    } catch (error) {
      if (!isStatus(error)) throw error
      return { status: error.code, body: JSON.stringify(error.toStatus()) }
    }
  }
}

/** @throws CommandError when the server does not answer or answers with an error status */
export async function askFor<T>(ask: Ask, path: string, body?: unknown): Promise<T> {
  const answer = await ask(path, body)
  if (!answer) throw new CommandError('unmetPrerequisite', 'the cluster does not answer', { hint: 'start it with: skiff start' })
  if (answer.status >= 200 && answer.status < 300) return JSON.parse(answer.body) as T
  const message = messageIn(answer.body) ?? `the cluster answered ${answer.status}`
  throw new CommandError(answer.status === 404 ? 'notFound' : answer.status === 503 ? 'unmetPrerequisite' : 'internal', message)
}

function messageIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as Status).message
  } catch {
    return undefined
  }
}

export interface ServedResource {
  readonly group: string
  /** Where its version is served: `/api/v1`, `/apis/apps/v1`. */
  readonly path: string
  readonly resource: APIResource
}

interface GroupList {
  readonly groups?: readonly { readonly name: string; readonly preferredVersion?: { readonly groupVersion: string } }[]
}

/** Every resource in its group's preferred version; `silent`: groups whose discovery fails. */
export async function servedResources(ask: Ask): Promise<{ readonly served: readonly ServedResource[]; readonly silent: readonly string[] }> {
  const { groups = [] } = await askFor<GroupList>(ask, '/apis')
  const versions = [
    { group: '', path: '/api/v1' },
    ...groups.flatMap(({ name, preferredVersion }) => (preferredVersion ? [{ group: name, path: `/apis/${preferredVersion.groupVersion}` }] : [])),
  ]
  const silent: string[] = []
  const served: ServedResource[] = []
  for (const { group, path } of versions) {
    const list = await askFor<APIResourceList>(ask, path).catch(() => undefined)
    if (!list) silent.push(group)
    for (const resource of list?.resources ?? []) served.push({ group, path, resource })
  }
  return { served, silent }
}
