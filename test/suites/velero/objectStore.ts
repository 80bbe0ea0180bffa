/**
 * An object store with one bucket, in memory: as much of Amazon's S3 as Velero's plugin asks for, with the bucket in the path. It checks the
 * signature of each request. Objects in several parts are refused. Upstream: Amazon S3 API Reference, version 2006-03-01.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type BucketKeys, signatureFault } from '#main/backup/testSignature'

const host = '127.0.0.1'
const mostBytes = 64 * 1024 * 1024
export const keys = { accessKeyId: 'suite', secretAccessKey: 'secret', region: 'us-east-1' }

interface StoredObject {
  readonly data: Buffer
  readonly modified: Date
}

export interface ObjectStore {
  readonly url: string
  readonly bucket: string
  /** The keys of all objects. */
  names(): string[]
  stop(): Promise<void>
}

export async function startObjectStore(bucket: string): Promise<ObjectStore> {
  const objects = new Map<string, StoredObject>()
  const server = createServer((request, response) => {
    answer(request, response, objects, { ...keys, bucket }).catch((error: Error) => refuse(response, 500, error.message))
  }).listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}`,
    bucket,
    names: () => [...objects.keys()].sort(),
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, objects: Map<string, StoredObject>, keys: BucketKeys): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`)
  const body = await bodyOf(request)
  if (body === undefined) return refuse(response, 400, 'EntityTooLarge')
  const fault = signatureFault(request, body, keys)
  if (fault) return refuse(response, 403, fault)
  const [name, ...rest] = decodeURIComponent(pathname).slice(1).split('/')
  const key = rest.join('/')
  const found = objects.get(key)
  const operation = `${request.method} ${key === '' ? 'bucket' : 'object'}`
  if (name !== keys.bucket) refuse(response, 404, 'NoSuchBucket')
  else if (operation === 'GET bucket') sendXml(response, 200, listing(keys.bucket, objects, searchParams))
  else if (operation === 'PUT object' && !searchParams.has('uploadId')) {
    const stored = { data: body, modified: new Date() }
    objects.set(key, stored)
    response.writeHead(200, { etag: etag(stored) }).end()
  } else if (operation === 'DELETE object') {
    objects.delete(key)
    response.writeHead(204).end()
  } else if (operation !== 'GET object' && operation !== 'HEAD object') refuse(response, 501, 'NotImplemented')
  else if (!found) refuse(response, 404, 'NoSuchKey')
  else {
    response.writeHead(200, { 'content-length': found.data.length, etag: etag(found), 'last-modified': found.modified.toUTCString() })
    response.end(request.method === 'GET' ? found.data : undefined)
  }
}

/** Undefined when it is too large. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > mostBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** ListObjectsV2: keys with the prefix; those with the delimiter after it are one common prefix. */
function listing(bucket: string, objects: ReadonlyMap<string, StoredObject>, query: URLSearchParams): string {
  const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter') ?? '']
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort()
  const commonPrefix = (key: string) => {
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    return end < 0 ? undefined : key.slice(0, end + delimiter.length)
  }
  const prefixes = new Set(keys.map(commonPrefix).filter((one) => one !== undefined))
  const contents = keys.flatMap((key) => {
    const found = objects.get(key)
    if (!found || commonPrefix(key) !== undefined) return []
    const { data, modified } = found
    return [element('Contents', `${text('Key', key)}${text('LastModified', modified.toISOString())}${text('ETag', etag(found))}${text('Size', data.length)}`)]
  })
  const about = `${text('Name', bucket)}${text('Prefix', prefix)}${text('Delimiter', delimiter)}${text('KeyCount', contents.length + prefixes.size)}`
  const found = [...contents, ...[...prefixes].map((one) => element('CommonPrefixes', text('Prefix', one)))].join('')
  return element('ListBucketResult', `${about}${text('MaxKeys', 1000)}${text('IsTruncated', 'false')}${found}`)
}

const etag = ({ data }: StoredObject) => `"${createHash('md5').update(data).digest('hex')}"`
const element = (name: string, content: string) => `<${name}>${content}</${name}>`
const escaped: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const text = (name: string, value: string | number) =>
  element(
    name,
    String(value).replace(/[&<>"]/g, (letter) => escaped[letter] ?? letter),
  )

function sendXml(response: ServerResponse, status: number, content: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(`<?xml version="1.0" encoding="UTF-8"?>\n${content}`)
}

function refuse(response: ServerResponse, status: number, code: string): void {
  sendXml(response, status, element('Error', `${text('Code', code)}${text('Message', 'refused')}`))
}
