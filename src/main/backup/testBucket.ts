/** For tests: a bucket that keeps objects in memory and checks each request's signature. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type BucketKeys, signatureFault } from './testSignature.ts'

interface StoredObject {
  readonly content: Buffer
  readonly meta: string
}

export async function serveBucket(keys: BucketKeys) {
  const objects = new Map<string, StoredObject>()
  const refused: string[] = []
  const server = http.createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces)
    const isUnsized = request.method === 'PUT' && request.headers['content-length'] === undefined
    const fault = isUnsized ? 'MissingContentLength' : signatureFault(request, body, keys)
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
