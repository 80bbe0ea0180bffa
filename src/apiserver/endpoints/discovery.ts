/**
 * Serves discovery (L3): /api, /apis, groups and group-versions, plain or aggregated by Accept. Each document is made and
 * hashed once per change of the catalog.
 */
import { createHash } from 'node:crypto'
import {
  aggregatedDiscoveryType,
  apiGroup,
  apiGroupDiscoveryList,
  apiGroupList,
  apiResourceList,
  apiVersions,
  type DiscoveryGroup,
  discoveryGroups,
} from '#api/discovery/discovery'
import type { Answer, BytesAnswer } from '../core/answer.ts'
import { clauses, negotiate, notAcceptable } from '../core/negotiate.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Catalog } from '../registry/catalog.ts'

export interface Discovery {
  /** Undefined when the path is no discovery path. */
  answer(request: ServerRequest): Answer | undefined
}

export function createDiscovery(catalog: Catalog, serverAddress: () => string): Discovery {
  const documents = new Map<string, BytesAnswer>()
  let made: { changes: number; groups: readonly DiscoveryGroup[] } | undefined
  const currentGroups = () => {
    if (made?.changes !== catalog.changes) {
      documents.clear()
      made = { changes: catalog.changes, groups: discoveryGroups(catalog.groupVersions(), catalog.resources()) }
    }
    return made.groups
  }
  const document = (key: string, contentType: string, make: () => unknown): BytesAnswer => {
    let known = documents.get(key)
    if (!known) {
      const bytes = Buffer.from(`${JSON.stringify(make())}\n`)
      const etag = `"${createHash('sha256').update(bytes).digest('hex').toUpperCase()}"`
      known = { type: 'bytes', status: 200, contentType, bytes, headers: { etag, vary: 'Accept' } }
      documents.set(key, known)
    }
    return known
  }
  const plain = (request: ServerRequest, make: () => unknown) => {
    negotiate(request)
    return document(segments(request.path).join('/'), 'application/json', make)
  }
  return {
    answer(request) {
      const [root, ...rest] = segments(request.path)
      if (root !== 'api' && root !== 'apis') return undefined
      const groups = currentGroups()
      if (rest.length === 0) {
        if (wantsAggregated(request)) return conditional(request, aggregated(root, document, groups))
        return plain(request, () => (root === 'api' ? apiVersions(serverAddress()) : apiGroupList(groups)))
      }
      const name = root === 'api' ? '' : rest[0]
      const group = groups.find((one) => one.group === name)
      if (!group) return undefined
      const version = root === 'api' ? rest[0] : rest[1]
      if (rest.length > (root === 'api' ? 1 : 2)) return undefined
      if (version === undefined) return plain(request, () => apiGroup(group))
      const found = group.versions.find((one) => one.version === version)
      return found && plain(request, () => apiResourceList(group.group, found.version, found.resources))
    },
  }
}

/** However many slashes a path has, it is one document. */
function segments(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

type DocumentMaker = (key: string, contentType: string, make: () => unknown) => BytesAnswer

function aggregated(root: 'api' | 'apis', document: DocumentMaker, groups: readonly DiscoveryGroup[]): BytesAnswer {
  const chosen = groups.filter(({ group }) => (group === '') === (root === 'api'))
  return document(`aggregated ${root}`, aggregatedDiscoveryType, () => apiGroupDiscoveryList(chosen))
}

/** Clients list the aggregated form first, the plain one after it. */
function wantsAggregated(request: ServerRequest): boolean {
  const header = request.headers.accept
  if (typeof header !== 'string' || header === '') return false
  for (const { type, parameters } of clauses(header)) {
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue
    if (parameters.get('as') === undefined) return false
    if (parameters.get('as') === 'APIGroupDiscoveryList' && parameters.get('g') === 'apidiscovery.k8s.io' && parameters.get('v') === 'v2') return true
  }
  throw notAcceptable(['application/json', 'application/yaml'])
}

/** 304 when the client has this version of the document already. */
export function conditional(request: ServerRequest, answer: BytesAnswer): BytesAnswer {
  const known = request.headers['if-none-match']
  if (typeof known !== 'string' || known !== answer.headers?.etag) return answer
  return { ...answer, status: 304, bytes: Buffer.alloc(0) }
}
