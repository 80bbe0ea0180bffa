/** What the page of `skiff ui` asks the command line's own code for (L4): `why`, `history` and `trace`, with the credentials of the page's user. */
import { StatusError } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import type { Computed } from '#ui/server/front'
import { CommandError } from '../exitCodes.ts'
import { traceNow } from '../hops/podTrace.ts'
import { revisionsOf } from '../past/connection.ts'
import { type Kind, listableKinds } from '../past/objects.ts'
import { shownHistory } from '../past/shownHistory.ts'
import { explainAccess } from '../why/access.ts'
import { explainAutoscaler } from '../why/autoscaler.ts'
import { explainNamespace } from '../why/namespace.ts'
import { explainKind } from '../why/object.ts'
import type { Ask } from '../why/questions.ts'

export const pageAnswers: Readonly<Record<string, Computed>> = {
  '/front/why': answering(why),
  '/front/history': answering(history),
  '/front/trace': answering(({ namespace = 'default', name }, transport) => traceNow(transport, { namespace, name: needed(name, 'name') })),
}

type Query = Readonly<Record<string, string | undefined>>

/** Errors of commands become answers that the page shows. */
function answering(compute: (query: Query, transport: Transport, all: URLSearchParams) => Promise<unknown>): Computed {
  return async (query, { transport }) => {
    try {
      return await compute(Object.fromEntries(query), transport, query)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      const reason = ({ usage: 'BadRequest', notFound: 'NotFound' } as const)[error.exit as 'usage'] ?? 'ServiceUnavailable'
      throw new StatusError(reason, [error.message, error.hint].filter(Boolean).join('; '), { cause: error })
    }
  }
}

/** The answers of the server, whose refusals are thrown as they are. */
function askOver(transport: Transport): Ask {
  return async (path, body) => {
    const answer = await transport.request({ method: body === undefined ? 'GET' : 'POST', path, body })
    return { status: answer.status, body: JSON.stringify(answer.body) }
  }
}

async function why({ kind, namespace = 'default', name, verb, group, resource, user }: Query, transport: Transport, all: URLSearchParams): Promise<unknown> {
  const ask = askOver(transport)
  if (kind === 'Namespace') return explainNamespace(ask, needed(name, 'name'))
  if (kind === 'HorizontalPodAutoscaler') return explainAutoscaler(ask, namespace, needed(name, 'name'))
  if (kind === 'access')
    return explainAccess(ask, {
      user: needed(user, 'user'),
      verb: needed(verb, 'verb'),
      resource: needed(resource, 'resource'),
      name: name || undefined,
      namespace,
      groups: all.getAll('group'),
    })
  if (kind !== undefined) throw new StatusError('BadRequest', `there is no answer for the kind ${kind}: give its group and resource instead`)
  return explainKind(transport, await kindOf(transport, { group, resource: needed(resource, 'resource') }), namespace, needed(name, 'name'))
}

async function kindOf(transport: Transport, { group = '', resource }: Pick<Query, 'group' | 'resource'>): Promise<Kind> {
  const found = (await listableKinds(transport)).find((one) => one.group === group && one.resource === resource)
  if (!found) throw new StatusError('NotFound', `the cluster lists no ${resource}`)
  return found
}

const mostVersions = 100

async function history({ group, resource, namespace = 'default', name, limit = '30', searches }: Query, transport: Transport): Promise<unknown> {
  const [revisions, kind] = await Promise.all([revisionsOf(transport), kindOf(transport, { group, resource })])
  const found = {
    kind,
    namespace,
    name: needed(name, 'name'),
    limit: Math.min(Number(limit) || 1, mostVersions),
    showSecrets: false,
    searches: searches !== '0',
  }
  return { ...(await shownHistory(transport, found, revisions)), oldestRevision: revisions.oldestRevision, newestRevision: revisions.revision }
}

function needed(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new StatusError('BadRequest', `${name} is missing`)
  return value
}
