/**
 * The context of a resource handler (L3): the resource, the user, the field manager, dry run.
 * Upstream: handlers' RequestScope and the metav1 options.
 */
import type { SubresourceFacts } from '#api/discovery/resources'
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { ReadView } from '#store/store'
import type { Answer } from '../core/answer.ts'
import type { CachedObject, RequestInfo, ServerRequest, UserInfo } from '../core/request.ts'
import { type CacheEntry, prepareViews } from '../core/watch/cacheEntry.ts'
import type { Registry } from '../registry/registry.ts'
import type { ServedResource, WriteContext } from '../registry/storedResource.ts'
import type { WriterDeps } from '../registry/writer.ts'
import type { YamlThread } from '../yaml/yamlThread.ts'

export interface EndpointDeps {
  readonly registry: Registry
  readonly writer: WriterDeps
  readonly store: ReadView
  readonly clock: Clock
  readonly yaml: YamlThread
  /** The feature gate AllowUnsafeMalformedObjectDeletion: objects that cannot be read may be deleted. */
  readonly unsafeDeletion: boolean
  /** Watches without a timeoutSeconds of their own last at least this long, at most twice as long. */
  readonly minWatchTimeoutMs: number
}

export interface Scope {
  readonly deps: EndpointDeps
  readonly request: ServerRequest
  readonly info: RequestInfo
  readonly served: ServedResource
  readonly subresource?: SubresourceFacts | undefined
}

/** The entry in the served version. */
export function viewOf({ served, request }: Scope, entry: CacheEntry): Promise<CachedObject> | CachedObject {
  const preparing = prepareViews([entry], served.view, request.cancellation)
  return preparing ? preparing.then(() => entry.view(served.view)) : entry.view(served.view)
}

/** The answer with an entry in the served version; a promise only if a conversion webhook is called. */
export function shown(scope: Scope, entry: CacheEntry, answer: (object: CachedObject) => Answer): Promise<Answer> | Answer {
  const view = viewOf(scope, entry)
  return view instanceof Promise ? view.then(answer) : answer(view)
}

/** The context of a write: the user, the options and the field manager. */
export function writeContext(scope: Scope, kind: string, options: { dryRun?: readonly string[] | undefined } = {}): WriteContext {
  const { request, info, served } = scope
  return {
    served,
    subresource: info.subresource,
    namespace: served.namespaced ? info.namespace : '',
    user: request.user as UserInfo,
    fieldManager: fieldManagerOf(request, kind),
    dryRun: dryRunOf(options.dryRun ?? request.query.getAll('dryRun'), kind),
    warn: (text) => request.warnings.push(text),
    cancellation: request.cancellation,
    request,
  }
}

/** The query's fieldManager, or the part of the User-Agent before the slash. */
function fieldManagerOf(request: ServerRequest, kind: string): string {
  const asked = request.query.get('fieldManager')
  if (asked) {
    if (asked.length > 128) throw invalidOption(kind, 'fieldManager', 'FieldValueTooLong', 'Too long: may not be more than 128 bytes')
    if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(asked)) {
      throw invalidOption(kind, 'fieldManager', 'FieldValueInvalid', `Invalid value: ${JSON.stringify(asked)}: should only contain printable characters`)
    }
    return asked
  }
  const agent = request.headers['user-agent']
  const name = (typeof agent === 'string' ? agent : 'unknown').split('/')[0] ?? ''
  return name.slice(0, 128) || 'unknown'
}

/** @throws Status Invalid */
export function dryRunOf(values: readonly string[], kind: string): boolean {
  for (const value of values) {
    if (value !== 'All') throw invalidOption(kind, 'dryRun', 'FieldValueNotSupported', `Unsupported value: ${JSON.stringify(value)}: supported values: "All"`)
  }
  return values.length > 0
}

/** The 422 for an option that does not validate. */
export function invalidOption(kind: string, field: string, reason: string, body: string): StatusError {
  return new StatusError('Invalid', `${kind}.meta.k8s.io "" is invalid: ${field}: ${body}`, {
    details: { group: 'meta.k8s.io', kind, causes: [{ reason, message: body, field }] },
  })
}
