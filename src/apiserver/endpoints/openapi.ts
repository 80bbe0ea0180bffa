/**
 * Serves /openapi/v2 and /openapi/v3 (L3). Documents are built when first asked for and kept as bytes until what they are made of
 * changes. Hashes follow from the revisions of the catalog's sources, so that nothing is built to list them.
 * Upstream: apiserver/pkg/server/routes/openapi.go, kube-openapi handlers, kube-aggregator/pkg/controllers/openapi.
 */
import { createHash } from 'node:crypto'
import { type OpenApiInput, openApiV2, openApiV3, openApiV3Index, openApiV3Keys } from '#api/machinery/openapi/document'
import { encodeGnostic, gnosticAcceptedTypes, gnosticMediaType } from '#api/machinery/openapi/gnostic'
import type { JsonSchema } from '#api/machinery/openapi/schemas'
import type { Answer, BytesAnswer } from '../answer.ts'
import type { Catalog } from '../catalog.ts'
import type { ServerRequest } from '../request.ts'
import { conditional } from './discovery.ts'
import { clauses, notAcceptable } from './negotiate.ts'
import { OpenApiPieces } from './openapiPieces.ts'

/** Texts for `kubectl explain`: of a definition, or of one of its fields. */
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
  /** By key; a document of another hash is out of date. */
  const documents = new Map<string, { hash: string; answer: BytesAnswer }>()
  let known: State | undefined
  const current = (): State => {
    if (known?.changes !== catalog.changes) known = stateOf(parts)
    return known
  }
  const document = (key: string, hash: string, contentType: string, make: () => Uint8Array): BytesAnswer => {
    let made = documents.get(key)
    if (made?.hash !== hash) {
      made = { hash, answer: { type: 'bytes', status: 200, contentType, bytes: make(), headers: { etag: `"${hash}"`, vary: 'Accept' } } }
      documents.set(key, made)
    }
    return made.answer
  }
  let builtIn: JsonSchema | undefined
  /** What is compiled in never changes, and is most of the document. */
  const builtInV2 = (input: OpenApiInput): JsonSchema => {
    builtIn ??= openApiV2({ ...input, resources: input.resources.filter((facts) => !facts.custom), extras: [] })
    return builtIn
  }
  const wholeV2 = (input: OpenApiInput): JsonSchema => {
    const custom = input.resources.filter((facts) => facts.custom)
    return custom.length === 0 ? builtInV2(input) : joined(builtInV2(input), openApiV2({ ...input, resources: custom }))
  }
  const pieces = new OpenApiPieces()
  /** One that is being made is made for all who ask meanwhile. */
  let making: { readonly hash: string; readonly bytes: Promise<Uint8Array> } | undefined
  const jsonV2 = async (hash: string, input: OpenApiInput): Promise<BytesAnswer> => {
    if (documents.get('v2')?.hash !== hash && making?.hash !== hash) making = { hash, bytes: pieces.document(() => builtInV2(input), input, catalog) }
    const bytes = making?.hash === hash ? await making.bytes : new Uint8Array()
    return document('v2', hash, 'application/json', () => bytes)
  }
  const json = (key: string, hash: string, make: () => unknown) => document(key, hash, 'application/json', () => Buffer.from(JSON.stringify(make())))
  return (request) => {
    const { path } = request
    if (!path.startsWith('/openapi/')) return undefined
    const { input, hashes, v2Hash } = current()
    if (path === '/openapi/v2') {
      if (wants(request) === 'json') return jsonV2(v2Hash, input).then((answer) => conditional(request, answer))
      const whole = () => withForeign(wholeV2(input), catalog)
      return conditional(
        request,
        document('v2 protobuf', v2Hash, gnosticMediaType, () => encodeGnostic(whole())),
      )
    }
    if (path === '/openapi/v3')
      return conditional(
        request,
        json('v3', v2Hash, () => openApiV3Index([...hashes.keys()].sort(), (key) => hashes.get(key) ?? '')),
      )
    const key = path.slice('/openapi/v3/'.length)
    for (const { openApi } of catalog.sources()) if (openApi?.v3.has(key)) return openApi.v3.get(key)?.answer(request)
    const hash = hashes.get(key)
    if (hash === undefined) return undefined
    const answer = json(`v3 ${key}`, hash, () => openApiV3(key, input))
    // With its hash in the address a document never changes.
    if (request.query.get('hash') !== hash) return conditional(request, answer)
    return conditional(request, { ...answer, headers: { ...answer.headers, 'cache-control': 'public, immutable', expires: farFuture } })
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

/** Adds what other servers say of their paths and definitions; what is there already stays. */
function withForeign(document: JsonSchema, catalog: Catalog): JsonSchema {
  let merged = document
  for (const { openApi } of catalog.sources()) if (openApi?.v2) merged = joined(merged, openApi.v2)
  return merged
}

/** The first document with what only the second has. */
function joined(first: JsonSchema, second: JsonSchema): JsonSchema {
  const merged = { ...first }
  for (const member of ['paths', 'definitions', 'parameters']) merged[member] = { ...(second[member] as JsonSchema), ...(first[member] as JsonSchema) }
  return merged
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
