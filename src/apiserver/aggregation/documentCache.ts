/**
 * The discovery and OpenAPI documents of extension servers (L3), one set per Service however many group-versions it serves; fetched again
 * after a minute, with If-None-Match.
 * Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go (cachedResults), pkg/controllers/{openapi,openapiv3}.
 */
import { createHash } from 'node:crypto'
import { aggregatedDiscoveryType } from '#api/discovery/discovery'
import type { ResourceFacts } from '#api/discovery/resources'
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import type { JsonSchema } from '#api/openapi/schemas'
import type { Clock } from '#base/clock'
import type { UserInfo } from '../core/request.ts'
import type { ExtensionServers, Fetched } from './extensionServer.ts'
import { type DiscoveryList, factsOfDiscovery, factsOfResourceList, openApiPart, parseDocument, type ResourceList } from './foreignDocuments.ts'
import { portOf } from './serviceResolver.ts'

/** The cached documents of one group-version. */
export interface GroupVersionDocuments {
  readonly resources: readonly ResourceFacts[]
  readonly openApiV2?: JsonSchema | undefined
  /** The hash of its OpenAPI v3 document; absent: it has none. */
  readonly openApiV3Hash?: string | undefined
  /** Identifies the content. */
  readonly revision: string
}

interface Document {
  readonly etag: string
  readonly hash: string
  readonly value: unknown
}

interface Known {
  readonly documents: Map<string, Document>
  fetchedMs: number
  /** The TLS settings of the fetch: after a change of them, another server may answer. */
  reach: string
}

/** The users in whose name documents are fetched. Upstream fetches OpenAPI as system:aggregator. */
export const aggregatorUser: UserInfo = { name: 'system:kube-aggregator', groups: ['system:masters'] }
const openApiUser: UserInfo = { name: 'system:aggregator', groups: [] }
const refreshMs = 60_000
/** Parsed in one turn of the event loop. */
const maxDocumentBytes = 16 * 1024 * 1024

export class DocumentCache {
  readonly #servers: ExtensionServers
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()

  constructor(servers: ExtensionServers, clock: Clock) {
    this.#servers = servers
    this.#clock = clock
  }

  /** The documents of an available APIService, fresh within a minute. @throws when the server does not return them */
  async of(apiService: Frozen<APIService>, signal: AbortSignal): Promise<GroupVersionDocuments> {
    const { group = '', version = '' } = apiService.spec
    const known = this.#entry(apiService)
    if (this.#clock.monotonicMs() - known.fetchedMs >= refreshMs) {
      const startedMs = this.#clock.monotonicMs()
      await this.#refresh(known, apiService, signal)
      known.fetchedMs = startedMs
    }
    const list = known.documents.get('/apis')?.value as DiscoveryList | undefined
    const legacyPath = `/apis/${group}/${version}`
    if (!list && !known.documents.has(legacyPath)) await this.#load(known, apiService, legacyPath, 'application/json', aggregatorUser, signal)
    const resources = list
      ? factsOfDiscovery(list, group, version)
      : factsOfResourceList((known.documents.get(legacyPath)?.value ?? {}) as ResourceList, group, version)
    const v2 = known.documents.get('/openapi/v2')
    const openApiV3Hash = v3Hash(known.documents.get('/openapi/v3'), group, version)
    const revision = [known.documents.get('/apis')?.hash ?? known.documents.get(legacyPath)?.hash, v2?.hash, openApiV3Hash].join(' ')
    return { resources, openApiV2: v2 && openApiPart(v2.value as JsonSchema, group, version), openApiV3Hash, revision }
  }

  /** Drops the documents of servers without an APIService. */
  keep(apiServices: readonly Frozen<APIService>[]): void {
    const used = new Set(apiServices.map(keyOf))
    for (const key of this.#known.keys()) if (!used.has(key)) this.#known.delete(key)
  }

  /** The next call fetches again. */
  expire(apiService: Frozen<APIService>): void {
    const known = this.#known.get(keyOf(apiService))
    if (known) known.fetchedMs = Number.NEGATIVE_INFINITY
  }

  #entry(apiService: Frozen<APIService>): Known {
    const key = keyOf(apiService)
    const { caBundle = '', insecureSkipTLSVerify = false } = apiService.spec
    const reach = `${insecureSkipTLSVerify} ${caBundle}`
    let known = this.#known.get(key)
    if (known?.reach !== reach) {
      known = { documents: known?.documents ?? new Map(), fetchedMs: Number.NEGATIVE_INFINITY, reach }
      this.#known.set(key, known)
    }
    return known
  }

  async #refresh(known: Known, apiService: Frozen<APIService>, signal: AbortSignal): Promise<void> {
    for (const path of known.documents.keys()) if (path.startsWith('/apis/')) known.documents.delete(path)
    await this.#load(known, apiService, '/apis', aggregatedDiscoveryType, aggregatorUser, signal)
    await this.#load(known, apiService, '/openapi/v2', 'application/json', openApiUser, signal)
    await this.#load(known, apiService, '/openapi/v3', 'application/json', openApiUser, signal)
  }

  /** A document that the server does not have is no failure. */
  async #load(known: Known, apiService: Frozen<APIService>, path: string, accept: string, user: UserInfo, signal: AbortSignal): Promise<void> {
    const before = known.documents.get(path)
    const fetched = await this.#servers.fetch(apiService, { path, accept, etag: before?.etag, user, limitBytes: maxDocumentBytes, signal })
    if (fetched.status === 304) return
    if (fetched.status === 503) throw new Error(`${path} of ${keyOf(apiService)} is unavailable`)
    if (fetched.status !== 200 || (path === '/apis' && !isAggregated(fetched))) known.documents.delete(path)
    else known.documents.set(path, documentOf(fetched))
  }
}

function documentOf({ etag, body }: Fetched): Document {
  return { etag, hash: createHash('sha256').update(body).digest('hex').toUpperCase(), value: parseDocument(body) }
}

function isAggregated({ contentType }: Fetched): boolean {
  return /;\s*g=apidiscovery\.k8s\.io/.test(contentType) && /;\s*v=v2(;|$)/.test(contentType) && /;\s*as=APIGroupDiscoveryList/.test(contentType)
}

/** The index names the hash of each document in its address. */
function v3Hash(index: Document | undefined, group: string, version: string): string | undefined {
  const { paths } = (index?.value ?? {}) as { paths?: Readonly<Record<string, { serverRelativeURL?: unknown } | null>> | null }
  const address = paths?.[`apis/${group}/${version}`]?.serverRelativeURL
  if (typeof address !== 'string') return undefined
  return new URLSearchParams(address.split('?')[1]).get('hash') ?? index?.hash
}

function keyOf({ spec }: Frozen<APIService>): string {
  const { namespace = '', name = '' } = spec.service ?? {}
  return `${namespace}/${name}:${spec.service ? portOf(spec.service) : ''}`
}
