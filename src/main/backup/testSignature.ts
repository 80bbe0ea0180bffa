/** For tests: computes the signature of a request itself, whether its headers or its query have it. Upstream: AWS Signature Version 4. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export interface BucketKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly bucket: string
}

interface Signed {
  readonly credential: string
  readonly time: string
  readonly names: readonly string[]
  readonly signature: string
  readonly payload: string
  /** The parameters of the query, without the signature. */
  readonly parameters: readonly (readonly [string, string])[]
}

const algorithm = 'AWS4-HMAC-SHA256'
const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** The code of the refusal; undefined when the keys signed the request, and its body. */
export function signatureFault(request: IncomingMessage, body: Buffer, keys: BucketKeys): string | undefined {
  const { searchParams } = new URL(request.url ?? '', 'http://bucket')
  return searchParams.has('X-Amz-Signature') ? faultOfQuery(request, searchParams, keys) : faultOfHeaders(request, searchParams, body, keys)
}

function faultOfHeaders(request: IncomingMessage, query: URLSearchParams, body: Buffer, keys: BucketKeys): string | undefined {
  const payload = String(request.headers['x-amz-content-sha256'])
  if (payload !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const [, credential = '', signed = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(request.headers.authorization ?? '') ?? []
  const names = signed.split(';')
  if (credential !== '' && !['x-amz-date', 'x-amz-content-sha256'].every((name) => names.includes(name))) return 'AccessDenied'
  return faultOf(request, { credential, time: String(request.headers['x-amz-date']), names, signature, payload, parameters: [...query] }, keys)
}

function faultOfQuery(request: IncomingMessage, query: URLSearchParams, keys: BucketKeys): string | undefined {
  const of = (name: string) => query.get(`X-Amz-${name}`) ?? ''
  const time = of('Date')
  const startedMs = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!(startedMs + Number(of('Expires')) * 1000 > Date.now())) return 'AccessDenied'
  const parameters = [...query].filter(([name]) => name !== 'X-Amz-Signature')
  const signed = { credential: of('Credential'), time, names: of('SignedHeaders').split(';'), signature: of('Signature'), payload: 'UNSIGNED-PAYLOAD' }
  return faultOf(request, { ...signed, parameters }, keys)
}

function faultOf({ method, url = '', headers }: IncomingMessage, signed: Signed, keys: BucketKeys): string | undefined {
  const { time, names, payload } = signed
  const scope = `${time.slice(0, 8)}/${keys.region}/s3/aws4_request`
  if (signed.credential !== `${keys.accessKeyId}/${scope}`) return 'InvalidAccessKeyId'
  if (!names.includes('host') || !/^[0-9a-f]{64}$/.test(signed.signature)) return 'AccessDenied'
  const values = names.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`)
  const canonical = [method, url.split('?', 1)[0], canonicalQuery(signed.parameters), ...values, '', names.join(';'), payload].join('\n')
  const dateKey = hmac(`AWS4${keys.secretAccessKey}`, time.slice(0, 8))
  const signingKey = hmac(hmac(hmac(dateKey, keys.region), 's3'), 'aws4_request')
  const wanted = hmac(signingKey, [algorithm, time, scope, sha256(canonical)].join('\n'))
  return timingSafeEqual(wanted, Buffer.from(signed.signature, 'hex')) ? undefined : 'SignatureDoesNotMatch'
}

function canonicalQuery(parameters: Signed['parameters']): string {
  const encoded = parameters.map(([name, value]) => [encode(name), encode(value)] as const)
  const isBefore = (a: readonly [string, string], b: readonly [string, string]) => (a[0] === b[0] ? a[1] < b[1] : a[0] < b[0])
  return encoded
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&')
}

/** Encodes everything but what RFC 3986 leaves unreserved. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
