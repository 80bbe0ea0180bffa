/**
 * Watches (L3): from a revision, from the current state, or as a streaming list with its closing bookmark.
 * Upstream: handlers/get.go, handlers/watch.go and cacher.Watch.
 */
import { isStatus } from '#api/machinery/status'
import { protobufMediaType } from '#api/protobuf/envelope'
import type { Answer } from '../core/answer.ts'
import { encodingOf, notAcceptable } from '../core/negotiate.ts'
import { truthy } from '../core/requestInfo.ts'
import { prepareViews } from '../core/watch/cacheEntry.ts'
import { type WatchItem, WatchSession } from '../core/watch/watchSession.ts'
import { parseRevision } from '../registry/list.ts'
import type { Selection } from '../registry/selection.ts'
import type { ServedResource } from '../registry/storedResource.ts'
import { checkWatchOptions, wantsInitialEvents } from './listOptions.ts'
import { createPresenter } from './present.ts'
import type { Scope } from './scope.ts'
import { integerOf, parseSelection } from './selectors.ts'

/** Upstream sends a last bookmark this long before a watch's end. */
const beforeEndMs = 2_000

export async function watchObjects(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const { query } = request
  const presenter = createPresenter(request, served, () => deps.clock.now())
  checkWatchOptions(query)
  if (presenter.form.mediaType === 'application/yaml') throw notAcceptable(streamTypes(served))
  // A name in the path selects that object; a name from the field selector is only for the authorizer.
  const name = info.parts.length > 0 ? info.name : ''
  const selection = parseSelection(served, info.namespace, query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '', name)
  const timeoutMs = timeoutOf(scope)
  const session = await openWatch(scope, selection)
  endWithBookmark(scope, session, timeoutMs)
  return {
    type: 'watch',
    session,
    ...presenter.watchForm(),
    timeoutMs,
    ...(presenter.form.mediaType === 'application/json' ? {} : encodingOf(presenter.form)),
  }
}

/** YAML has no streaming form. */
function streamTypes({ custom }: ServedResource): string[] {
  return ['application/json', ...(custom ? [] : [protobufMediaType])].map((type) => `${type};stream=watch`)
}

/** Errors from here on are sent in the stream: clients expect that a watch with valid options starts. */
async function openWatch(scope: Scope, selection: Selection): Promise<WatchSession> {
  const { deps, request, served } = scope
  const { query } = request
  const text = query.get('resourceVersion') ?? ''
  const revision = parseRevision(text)
  const bookmarks = truthy(query.get('allowWatchBookmarks'))
  const fromState = wantsInitialEvents(query)
  const { cacher } = deps.registry
  try {
    // The initial events must be as new as the requested version; without a version, as new as the last acknowledged write.
    const wait = fromState && text === '' ? cacher.waitUntilCurrent(request.cancellation) : cacher.waitFor((fromState && revision) || 1, request.cancellation)
    if (wait) await wait
    const afterRevision = fromState ? undefined : revision || cacher.revision
    const start = { selection, afterRevision, bookmarks, markInitialEvents: fromState && bookmarks, prepare: preparation(scope) }
    return served.stored.cache.watch(start, cacher.revision)
  } catch (error) {
    if (isStatus(error, 'Expired') || isStatus(error, 'Timeout')) return WatchSession.failed(error)
    throw error
  }
}

/** Ends a watch with a bookmark, so that its client resumes from there. Upstream: cacheWatcher.nextBookmarkTime. */
function endWithBookmark({ deps }: Scope, session: WatchSession, timeoutMs: number): void {
  if (!session.bookmarks || timeoutMs < beforeEndMs) return
  const timer = deps.clock.timer(timeoutMs - beforeEndMs, () => {
    session.push({ type: 'BOOKMARK', revision: deps.registry.cacher.revision, initialEventsEnd: false })
  })
  session.whenClosed(() => timer.cancel())
}

/** For versions that a webhook converts: the items of one batch are converted in one call before they are sent. */
function preparation({ served: { view }, request }: Scope): ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined {
  if (!view?.convertAll) return undefined
  return (items) => {
    const entries = items.flatMap((item) => (item.type === 'BOOKMARK' ? [] : [item.entry]))
    return prepareViews(entries, view, request.cancellation)
  }
}

function timeoutOf(scope: Scope): number {
  const { deps, request } = scope
  const asked = integerOf(request.query, 'timeoutSeconds')
  if (asked > 0) return asked * 1000
  return deps.minWatchTimeoutMs * (1 + deps.writer.random.next())
}
