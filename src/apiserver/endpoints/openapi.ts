/**
 * Serves /openapi/v2 and /openapi/v3 (L3). Documents are built when first asked for, entry by entry, so that others have their turn meanwhile,
 * and kept as bytes until what they are made of changes. Hashes follow from the revisions of the catalog's sources, so that nothing is built to
 * list them.
 * Upstream: apiserver/pkg/server/routes/openapi.go, kube-openapi handlers, kube-aggregator/pkg/controllers/openapi.
 */
import { createHash } from 'node:crypto'
import { type OpenApiInput, openApiV3Entries, openApiV3Head, openApiV3Index, openApiV3Keys } from '#api/openapi/document'
import { gnosticAcceptedTypes, gnosticMediaType } from '#api/openapi/gnostic'
import type { Answer, BytesAnswer } from '../core/answer.ts'
import { clauses, notAcceptable } from '../core/negotiate.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Catalog } from '../registry/catalog.ts'
import { conditional } from './discovery.ts'
import { jsonV2, jsonV3, protobufV2 } from './openapiForms.ts'
import { encodeDocument, OpenApiPieces } from './openapiPieces.ts'

/** Returns the text of a definition or of one of its fields, for `kubectl explain`. */
export type Describe = (definition: string, field?: string) => string | undefined

export interface OpenApiParts {
  readonly catalog: Catalog
  readonly describe: Describe
  readonly serverVersion: string
}

/** What one state of the catalog gives. */
interface State {
  readonly changes: number
  readonly input: OpenApiInput
  /** Keys of v3 and their hashes. */
  readonly hashes: ReadonlyMap<string, string>
  readonly v2Hash: string
}

type OpenApiHandler = (request: ServerRequest) => Promise<Answer> | Answer | undefined

export function createOpenApi(parts: OpenApiParts): OpenApiHandler {
  const { catalog } = parts
  /** By key; a document of another hash is out of date. One that is being made is made for all who ask meanwhile. */
  const documents = new Map<string, { readonly hash: string; readonly answer: Promise<BytesAnswer> }>()
  let known: State | undefined
  const current = (): State => {
    if (known?.changes !== catalog.changes) known = stateOf(parts)
    return known
  }
  const document = (key: string, hash: string, contentType: string, make: () => Promise<Uint8Array>): Promise<BytesAnswer> => {
    const there = documents.get(key)
    if (there?.hash === hash) return there.answer
    const made = make().then((bytes): BytesAnswer => ({ type: 'bytes', status: 200, contentType, bytes, headers: { etag: `"${hash}"`, vary: 'Accept' } }))
    const one = { hash, answer: made }
    documents.set(key, one)
    // What failed is tried again by the next who asks.
    made.catch(() => documents.get(key) === one && documents.delete(key))
    return made
  }
  const wholeV2 = { json: new OpenApiPieces(jsonV2), protobuf: new OpenApiPieces(protobufV2) }
  const v2 = (request: ServerRequest, { input, v2Hash }: State) => {
    const form = wants(request)
    const { mediaType } = form === 'json' ? jsonV2 : protobufV2
    return document(`v2 ${form}`, v2Hash, mediaType, () => wholeV2[form].document(input, catalog))
  }
  const v3Index = ({ hashes, v2Hash }: State) => {
    const index = () => openApiV3Index([...hashes.keys()].sort(), (key) => hashes.get(key) ?? '')
    return document('v3', v2Hash, jsonV3.mediaType, async () => Buffer.from(JSON.stringify(index())))
  }
  const v3 = async (request: ServerRequest, key: string, hash: string, { input }: State) => {
    const make = () => encodeDocument(jsonV3, openApiV3Head(input), openApiV3Entries(key, input))
    const answer = await document(`v3 ${key}`, hash, jsonV3.mediaType, make)
    // With its hash in the address a document never changes.
    if (request.query.get('hash') !== hash) return conditional(request, answer)
    return conditional(request, { ...answer, headers: { ...answer.headers, 'cache-control': 'public, immutable', expires: farFuture } })
  }
  return (request) => {
    const { path } = request
    if (!path.startsWith('/openapi/')) return undefined
    const state = current()
    if (path === '/openapi/v2') return v2(request, state).then((answer) => conditional(request, answer))
    if (path === '/openapi/v3') return v3Index(state).then((answer) => conditional(request, answer))
    const key = path.slice('/openapi/v3/'.length)
    for (const { openApi } of catalog.sources()) if (openApi?.v3.has(key)) return openApi.v3.get(key)?.answer(request)
    const hash = state.hashes.get(key)
    return hash === undefined ? undefined : v3(request, key, hash, state)
  }
}

function stateOf({ catalog, describe, serverVersion }: OpenApiParts): State {
  const sources = catalog.sources()
  const own = sources.filter((source) => !source.foreign)
  const resources = catalog.resources().filter(({ group, version }) => !catalog.foreign(group, version))
  const extras = own.flatMap((source) => source.definitions ?? [])
  const hashOf = (text: string) => createHash('sha256').update(`${serverVersion} ${text}`).digest('hex').toUpperCase()
  const hashes = new Map<string, string>()
  for (const key of openApiV3Keys(resources)) {
    const [root, group = '', version = ''] = key.split('/')
    const revision = root === 'api' ? catalog.revisionOf('', group) : catalog.revisionOf(group, version)
    hashes.set(key, hashOf(`${key} ${revision}`))
  }
  for (const { openApi } of sources) for (const [key, { hash }] of openApi?.v3 ?? []) hashes.set(key, hash)
  const v2Hash = hashOf(`v2 ${sources.map((source) => source.revision).join(' ')}`)
  return { changes: catalog.changes, input: { resources, describe, serverVersion, extras }, hashes, v2Hash }
}

const farFuture = 'Fri, 31 Dec 2100 00:00:00 GMT'

function wants(request: ServerRequest): 'json' | 'protobuf' {
  const { accept } = request.headers
  if (typeof accept !== 'string' || accept === '') return 'json'
  for (const { type } of clauses(accept)) {
    if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
    // kubectl before 1.27 asks for the protobuf form alone.
    if (gnosticAcceptedTypes.includes(type)) return 'protobuf'
  }
  throw notAcceptable(['application/json', gnosticMediaType])
}
