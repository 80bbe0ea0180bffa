/**
 * Serves /openapi/v2 and /openapi/v3 (L3). Documents are built when first asked for and kept as bytes. The index's hashes follow from what
 * the documents are made of, so that nothing is built to list them.
 * Upstream: apiserver/pkg/server/routes/openapi.go, kube-openapi handlers.
 */
import { createHash } from 'node:crypto'
import { openApiV2, openApiV3, openApiV3Index, openApiV3Keys } from '#api/machinery/openapi/document'
import { encodeGnostic, gnosticAcceptedTypes, gnosticMediaType } from '#api/machinery/openapi/gnostic'
import { builtInResources } from '#api/resources'
import type { Answer, BytesAnswer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import { conditional } from './discovery.ts'
import { clauses, notAcceptable } from './negotiate.ts'

/** Texts for `kubectl explain`: of a definition, or of one of its fields. */
export type Describe = (definition: string, field?: string) => string | undefined

export interface OpenApiParts {
  readonly describe: Describe
  readonly serverVersion: string
}

export function createOpenApi(parts: OpenApiParts): (request: ServerRequest) => Answer | undefined {
  const documents = new Map<string, BytesAnswer>()
  const input = { resources: builtInResources(), describe: parts.describe, serverVersion: parts.serverVersion }
  const hashOf = (key: string) => createHash('sha256').update(`${parts.serverVersion} ${key}`).digest('hex').toUpperCase()
  const document = (key: string, contentType: string, make: () => Uint8Array): BytesAnswer => {
    let known = documents.get(key)
    if (!known) {
      known = { type: 'bytes', status: 200, contentType, bytes: make(), headers: { etag: `"${hashOf(key)}"`, vary: 'Accept' } }
      documents.set(key, known)
    }
    return known
  }
  const json = (key: string, make: () => unknown) => document(key, 'application/json', () => Buffer.from(JSON.stringify(make())))
  return (request) => {
    const { path } = request
    if (path === '/openapi/v2') {
      if (wants(request) === 'json')
        return conditional(
          request,
          json('v2', () => openApiV2(input)),
        )
      return conditional(
        request,
        document('v2 protobuf', gnosticMediaType, () => encodeGnostic(openApiV2(input))),
      )
    }
    if (path === '/openapi/v3')
      return conditional(
        request,
        json('v3', () => openApiV3Index(openApiV3Keys(input.resources), hashOf)),
      )
    if (!path.startsWith('/openapi/v3/')) return undefined
    const key = path.slice('/openapi/v3/'.length)
    if (!openApiV3Keys(input.resources).includes(key)) return undefined
    const answer = json(key, () => openApiV3(key, input))
    // With its hash in the address a document never changes.
    if (request.query.get('hash') !== hashOf(key)) return conditional(request, answer)
    return conditional(request, { ...answer, headers: { ...answer.headers, 'cache-control': 'public, immutable', expires: farFuture } })
  }
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
