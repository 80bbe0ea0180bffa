/** For tests: a bucket that keeps objects in memory and computes each request's signature itself. Upstream: AWS Signature Version 4. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'

export interface BucketKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly bucket: string
}

interface StoredObject {
  readonly content: Buffer
  readonly meta: string
}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

export async function serveBucket(keys: BucketKeys) {
  const objects = new Map<string, StoredObject>()
  const refused: string[] = []
  const server = http.createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces)
    const fault = faultOf(request, body, keys)
    const key = decodeURIComponent(request.url ?? '').slice(`/${keys.bucket}/`.length)
    const answer = (status: number, code?: string) => {
      if (code !== undefined) refused.push(code)
      response.writeHead(status, objects.has(key) ? { 'x-amz-meta-snapshot-sha256': objects.get(key)?.meta } : {})
      response.end(code === undefined ? '' : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>refused</Message></Error>`)
    }
    if (fault) return answer(fault === 'MissingContentLength' ? 411 : 403, fault)
    if (request.method === 'PUT') objects.set(key, { content: body, meta: String(request.headers['x-amz-meta-snapshot-sha256']) })
    else if (request.method === 'HEAD' && !objects.has(key)) return answer(404)
    else if (request.method === 'DELETE') objects.delete(key)
    return answer(request.method === 'DELETE' ? 204 : 200)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, objects, refused, close: () => new Promise<void>((resolve) => server.close(() => resolve())) }
}

function faultOf({ method, url = '', headers }: http.IncomingMessage, body: Buffer, keys: BucketKeys): string | undefined {
  if (method === 'PUT' && headers['content-length'] === undefined) return 'MissingContentLength'
  if (headers['x-amz-content-sha256'] !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const [, id, scope = '', signed = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(headers.authorization ?? '') ?? []
  const time = String(headers['x-amz-date'])
  if (id !== keys.accessKeyId || scope !== `${time.slice(0, 8)}/${keys.region}/s3/aws4_request`) return 'InvalidAccessKeyId'
  const names = signed.split(';')
  if (!['host', 'x-amz-date', 'x-amz-content-sha256'].every((name) => names.includes(name))) return 'AccessDenied'
  const canonical = [method, url, '', ...names.map((name) => `${name}:${headers[name]}`), '', signed, headers['x-amz-content-sha256']].join('\n')
  const dateKey = hmac(`AWS4${keys.secretAccessKey}`, time.slice(0, 8))
  const signingKey = hmac(hmac(hmac(dateKey, keys.region), 's3'), 'aws4_request')
  const wanted = hmac(signingKey, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n'))
  return timingSafeEqual(wanted, Buffer.from(signature, 'hex')) ? undefined : 'SignatureDoesNotMatch'
}
