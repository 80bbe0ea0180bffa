/**
 * Watches (L3): from a revision, from the current state, or as a streaming list with its closing bookmark.
 * Upstream: handlers/get.go, handlers/watch.go and cacher.Watch.
 */
import type { Answer } from '../answer.ts'
import { truthy } from '../pipeline/requestInfo.ts'
import { prepareViews } from '../registry/cacheEntry.ts'
import { invalidRevision } from '../registry/list.ts'
import type { WatchItem } from '../registry/watchSession.ts'
import { encodingOf } from './negotiate.ts'
import { createPresenter } from './present.ts'
import { invalidOption, type Scope } from './scope.ts'
import { integerOf, parseSelection } from './selectors.ts'

export async function watchObjects(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const { query } = request
  const presenter = createPresenter(request, served, () => deps.clock.now())
  // A name in the path asks for that object alone; one from the field selector is only for the authorizer.
  const name = info.parts.length > 0 ? info.name : ''
  const selection = parseSelection(served, info.namespace, query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '', name)
  const bookmarks = truthy(query.get('allowWatchBookmarks'))
  const sendInitialEvents = initialEvents(query)
  const text = query.get('resourceVersion') ?? ''
  if (text !== '' && !/^\d+$/.test(text)) throw invalidRevision(text)
  const revision = Number(text || 0)
  const { cacher } = deps.registry
  // The state that a watch starts with must be as new as asked for; without a version, as new as the last acknowledged write.
  const fromState = sendInitialEvents ?? revision === 0
  const wait = fromState
    ? text === ''
      ? cacher.waitUntilCurrent(request.cancellation)
      : cacher.waitFor(revision || 1, request.cancellation)
    : cacher.waitFor(1, request.cancellation)
  if (wait) await wait
  const afterRevision = fromState ? undefined : sendInitialEvents === false && revision === 0 ? cacher.revision : revision
  const session = served.stored.cache.watch(
    { selection, afterRevision, bookmarks, markInitialEvents: sendInitialEvents === true && bookmarks, prepare: preparation(scope) },
    cacher.revision,
  )
  return {
    type: 'watch',
    session,
    form: presenter.watchForm(),
    bookmark: presenter.bookmark,
    timeoutMs: timeoutOf(scope),
    ...(presenter.form.mediaType === 'application/json' ? {} : encodingOf(presenter.form)),
  }
}

/** For versions that a webhook converts: what is about to be sent is converted first, all at once. */
function preparation({ served: { view }, request }: Scope): ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined {
  if (!view?.convertAll) return undefined
  return (items) => {
    const entries = items.flatMap((item) => (item.type === 'BOOKMARK' ? [] : [item.entry]))
    return prepareViews(entries, view, request.cancellation)
  }
}

function initialEvents(query: URLSearchParams): boolean | undefined {
  const asked = query.get('sendInitialEvents')
  const match = query.get('resourceVersionMatch') ?? ''
  const forbidden = (field: string, detail: string) => invalidOption('ListOptions', field, 'FieldValueForbidden', `Forbidden: ${detail}`)
  if (asked === null) {
    if (match !== '') throw forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    return undefined
  }
  if (match !== 'NotOlderThan') throw forbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  return truthy(asked)
}

function timeoutOf(scope: Scope): number {
  const { deps, request } = scope
  const asked = integerOf(request.query, 'timeoutSeconds')
  if (asked > 0) return asked * 1000
  return deps.minWatchTimeoutMs * (1 + deps.writer.random.next())
}
