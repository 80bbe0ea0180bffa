/**
 * Negotiates the form of an answer (L3): JSON, YAML or protobuf, and the object, a Table or only its metadata.
 * Upstream: apiserver/pkg/endpoints/handlers/negotiation.
 */
import { StatusError } from '#api/machinery/status'
import { protobufMediaType } from '#api/protobuf/envelope'
import type { Encoding } from './answer.ts'
import type { ServerRequest } from './request.ts'
import { truthy } from './requestInfo.ts'

export type Transformation = 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList'

export interface AnswerForm {
  readonly mediaType: 'application/json' | 'application/yaml' | typeof protobufMediaType
  readonly as?: Transformation | undefined
  /** The version asked for with `as`: v1 or v1beta1. */
  readonly metaVersion?: string | undefined
  readonly pretty: boolean
}

/**
 * `allow` names the transformations that the endpoint can do. `hasProtobuf`: false for kinds without a schema of their own.
 * @throws NotAcceptable when nothing in Accept can be served
 */
export function negotiate(request: ServerRequest, allow: readonly Transformation[] = [], hasProtobuf = true): AnswerForm {
  const header = request.headers.accept
  const accept = typeof header === 'string' ? header : (header?.join(',') ?? '')
  const pretty = wantsPretty(request)
  if (accept === '' || accept === 'application/json' || accept === '*/*') return { mediaType: 'application/json', pretty }
  for (const clause of clauses(accept)) {
    const mediaType = served(clause.type)
    if (!mediaType) continue
    const plain = pretty && mediaType !== protobufMediaType
    if (!clause.parameters.has('as')) {
      if (mediaType === protobufMediaType && !hasProtobuf) continue
      return { mediaType, pretty: plain }
    }
    const transformed = transformationOf(clause, allow)
    // Tables have no protobuf form.
    if (transformed && (mediaType !== protobufMediaType || transformed.as !== 'Table')) return { mediaType, ...transformed, pretty: plain }
  }
  throw notAcceptable(['application/json', 'application/yaml', ...(hasProtobuf ? [protobufMediaType] : [])])
}

/** The form that a clause asks for, when the endpoint has it. */
function transformationOf({ parameters }: Clause, allow: readonly Transformation[]): Pick<AnswerForm, 'as' | 'metaVersion'> | undefined {
  const as = allow.find((name) => name === parameters.get('as'))
  const metaVersion = parameters.get('v')
  const known = parameters.get('g') === 'meta.k8s.io' && (metaVersion === 'v1' || metaVersion === 'v1beta1')
  return as && known ? { as, metaVersion } : undefined
}

/** The encoding of errors. An Accept header that cannot be served must not hide the error: it is sent as JSON. */
export function errorEncoding(request: ServerRequest): Encoding | undefined {
  try {
    return encodingOf(negotiate(request)).encoding
  } catch {
    return undefined
  }
}

/** How a negotiated form is encoded; nothing for plain JSON. */
export function encodingOf(form: AnswerForm): { encoding?: Encoding } {
  if (form.mediaType === 'application/yaml') return { encoding: 'yaml' }
  if (form.mediaType === protobufMediaType) return { encoding: 'protobuf' }
  return form.pretty ? { encoding: 'pretty' } : {}
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  return new StatusError('NotAcceptable', `only the following media types are accepted: ${accepted.join(', ')}`)
}

interface Clause {
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
  readonly quality: number
}

/** The clauses of an Accept header, best first. */
export function clauses(accept: string): Clause[] {
  const found = accept.split(',').map((text) => {
    const [type = '', ...rest] = text.split(';').map((part) => part.trim())
    const parameters = new Map(rest.map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1).replace(/^"|"$/g, '')] as const))
    const quality = Number(parameters.get('q') ?? 1)
    return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality }
  })
  return found.sort((a, b) => b.quality - a.quality)
}

function served(type: string): AnswerForm['mediaType'] | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'application/json'
  return type === 'application/yaml' || type === protobufMediaType ? type : undefined
}

/** `?pretty=true`, or a browser, curl or Wget as the client, as upstream. */
function wantsPretty(request: ServerRequest): boolean {
  const pretty = request.query.get('pretty')
  if (pretty !== null) return truthy(pretty)
  const agent = request.headers['user-agent']
  return typeof agent === 'string' && /^(curl|Wget|Mozilla\/5\.0)/.test(agent)
}
