/**
 * GET /skiff/changes?after=REVISION&to=REVISION[&resource=secrets] (L3): what was created, changed and deleted between two revisions, as the events of a watch, one a line, oldest
 * first. A non-resource path, denied to users without a role that names it; kinds that the user may not list in all namespaces are left out, and named at
 * the end. Only of a store in this process, which can be read backwards; upstream has no counterpart.
 */
import { Readable } from 'node:stream'
import { badRequest, expired } from '#api/machinery/status'
import type { LocalStore, StoredChange, StoreSnapshot } from '#store/store'
import type { Authorizer } from '../authz/authorizer.ts'
import { authorize } from '../authz/union.ts'
import type { Page } from '../core/page.ts'
import type { UserInfo } from '../core/request.ts'
import { CacheEntry } from '../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import type { Registry } from '../registry/registry.ts'
import type { ServedResource } from '../registry/storedResource.ts'

export interface ChangesDeps {
  readonly store: Pick<LocalStore, 'snapshot'>
  readonly registry: Registry
  readonly authorizers: readonly Authorizer[]
}

export function changesPage(deps: ChangesDeps): Page {
  return {
    prefix: '/skiff/changes',
    handle: async ({ path, query, user }) => {
      if (path !== '/skiff/changes') return undefined
      const [after, to] = [revisionIn(query, 'after'), revisionIn(query, 'to')]
      const snapshot = await deps.store.snapshot()
      const { compactRevision, close } = snapshot
      if (after < compactRevision) {
        close()
        throw expired(`the history up to revision ${compactRevision} is compacted, and revision ${after} was asked for`)
      }
      const lines = linesOf(deps, snapshot, user as UserInfo, { after, to, resource: query.get('resource') })
      const body = Readable.from(lines, { objectMode: false, highWaterMark: 1 << 18 }).once('close', close)
      return { type: 'stream', status: 200, headers: { 'content-type': 'application/json;stream=watch' }, body }
    },
  }
}

function revisionIn(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? ''
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name}: expected a revision`)
  return Number(text)
}

interface Wanted {
  readonly after: number
  readonly to: number
  /** `deployments.apps`; null: all. */
  readonly resource: string | null
}

async function* linesOf(
  { registry, authorizers }: ChangesDeps,
  snapshot: StoreSnapshot,
  user: UserInfo,
  { after, to, resource }: Wanted,
): AsyncGenerator<Buffer> {
  const wanted = registry
    .all()
    .filter((served) => resource === null || resource === (served.group === '' ? served.resource : `${served.resource}.${served.group}`))
  // The first group and version of a storage is the preferred one.
  const kinds = new Map(wanted.toReversed().map((served) => [served.stored.prefix, served]))
  const allowed = new Map<string, boolean>()
  const mayList = async (served: ServedResource) => {
    const known = allowed.get(served.stored.prefix)
    if (known !== undefined) return known
    const isAllowed = await isListable(authorizers, user, served)
    allowed.set(served.stored.prefix, isAllowed)
    return isAllowed
  }
  const includes = (key: string) => kinds.has(prefixOf(key, kinds))
  for await (const changes of snapshot.changes({ after, to, includes })) {
    const lines: Buffer[] = []
    for (const change of changes) {
      const served = kinds.get(prefixOf(change.key, kinds))
      if (served && (await mayList(served))) lines.push(await lineOf(served, change))
    }
    if (lines.length > 0) yield Buffer.concat(lines)
  }
  const refused = [...allowed].flatMap(([prefix, isAllowed]) => (isAllowed ? [] : [prefix]))
  if (refused.length > 0) yield Buffer.from(`${JSON.stringify({ type: 'REFUSED', object: { prefixes: refused } })}\n`)
}

/** Prefixes are two or three segments: /registry/pods/, /registry/services/specs/. */
function prefixOf(key: string, kinds: ReadonlyMap<string, unknown>): string {
  let slash = key.indexOf('/', '/registry/'.length)
  for (let depth = 0; depth < 2 && slash > 0; depth++) {
    const prefix = key.slice(0, slash + 1)
    if (kinds.has(prefix)) return prefix
    slash = key.indexOf('/', slash + 1)
  }
  return ''
}

async function isListable(authorizers: readonly Authorizer[], user: UserInfo, { group, version, resource }: ServedResource): Promise<boolean> {
  const attributes = { user, verb: 'list', isResourceRequest: true, path: '', namespace: '', subresource: '', name: '' }
  const { decision } = await authorize(authorizers, { ...attributes, apiGroup: group, apiVersion: version, resource })
  return decision === 'allow'
}

const newline = Buffer.from('}\n')

async function lineOf({ kind, stored }: ServedResource, change: StoredChange): Promise<Buffer> {
  const { key, value, modRevision, createRevision, version } = change
  const own = key.slice(stored.prefix.length)
  if (version > 0) {
    const plain = await stored.cache.values.read(key, value)
    const entry = plain instanceof UnreadableValue ? plain : CacheEntry.read(own, plain, modRevision, createRevision)
    if (!(entry instanceof UnreadableValue))
      return Buffer.concat([Buffer.from(`{"type":"${version === 1 ? 'ADDED' : 'MODIFIED'}","object":`), entry.bytes, newline])
  }
  const [namespace, name] = stored.namespaced ? own.split('/', 2) : [undefined, own]
  const object = {
    apiVersion: stored.storageApiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), resourceVersion: String(modRevision) },
  }
  return Buffer.from(`${JSON.stringify({ type: version > 0 ? 'UNREADABLE' : 'DELETED', object })}\n`)
}
