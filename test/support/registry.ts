/**
 * A container registry over plain HTTP for tests: it serves images that were put into it, as `docker pull` and containerd ask for them, and
 * remembers what it was asked. It takes no pushes. Formats: OCI distribution-spec (GET and HEAD of manifests and blobs), image-spec.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RegistryRequest {
  readonly method: string
  readonly path: string
  /** As sent: 'Basic …' or nothing. */
  readonly authorization: string | undefined
}

export interface RegistryOptions {
  /** Where to listen; loopback by default. */
  readonly host?: string
  /** Credentials that may pull; absent: no credentials are needed. */
  readonly credentials?: { readonly username: string; readonly password: string }
}

export interface Registry {
  /** 'host:port'. */
  readonly address: string
  /** Every request so far, in order. */
  readonly requests: readonly RegistryRequest[]
  /** Puts the image of an OCI layout in a tar (ociTar) under 'repository:tag'; the tag may be put again. Answers with the manifest's digest. */
  put(name: string, layout: Uint8Array): string
  /** How often the manifest of 'repository:tag' was asked for. */
  pulls(name: string): number
  close(): Promise<void>
}

interface Blob {
  readonly data: Buffer
  readonly mediaType: string
}

interface Described {
  readonly digest: string
  readonly mediaType: string
}

const blockBytes = 512

/** The files of a POSIX tar. */
function untar(archive: Uint8Array): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  const bytes = Buffer.from(archive)
  const text = (start: number, length: number) => bytes.toString('utf8', start, start + length).replace(/\0.*$/s, '')
  for (let at = 0; at + blockBytes <= bytes.length && bytes[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12), 8)
    files.set(text(at, 100), bytes.subarray(at + blockBytes, at + blockBytes + size))
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes
  }
  return files
}

export async function startRegistry({ host = '127.0.0.1', credentials }: RegistryOptions = {}): Promise<Registry> {
  const blobs = new Map<string, Blob>()
  const tags = new Map<string, string>()
  const requests: RegistryRequest[] = []
  const wanted = credentials && `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { method = 'GET', url = '/', headers } = request
    requests.push({ method, path: url, authorization: headers.authorization })
    const refuse = (status: number, code: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ errors: [{ code }] }))
    if (wanted && headers.authorization !== wanted) {
      response.setHeader('www-authenticate', 'Basic realm="test"')
      return void refuse(401, 'UNAUTHORIZED')
    }
    if (url === '/v2/') return void response.writeHead(200).end('{}')
    const [, repository = '', kind = '', reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/?]+)/.exec(url) ?? []
    const digest = reference.startsWith('sha256:') ? reference : (tags.get(`${repository}:${reference}`) ?? '')
    const blob = blobs.get(digest)
    if (!blob || (method !== 'GET' && method !== 'HEAD')) return void refuse(404, kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN')
    response.writeHead(200, { 'content-type': blob.mediaType, 'content-length': blob.data.length, 'docker-content-digest': digest })
    response.end(method === 'HEAD' ? undefined : blob.data)
  }

  const server = createServer(answer)
  server.listen(0, host)
  await once(server, 'listening')
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    requests,
    put: (name, layout) => {
      const files = untar(layout)
      const json = <T>(path: string) => JSON.parse((files.get(path) ?? Buffer.from('{}')).toString()) as T
      const [manifest] = json<{ manifests: Described[] }>('index.json').manifests
      if (!manifest) throw new Error(`${name}: the layout holds no manifest`)
      const pathOf = (digest: string) => `blobs/${digest.replace(':', '/')}`
      const { config, layers } = json<{ config: Described; layers: Described[] }>(pathOf(manifest.digest))
      for (const { digest, mediaType } of [manifest, config, ...layers]) blobs.set(digest, { data: files.get(pathOf(digest)) ?? Buffer.alloc(0), mediaType })
      tags.set(name, manifest.digest)
      return manifest.digest
    },
    pulls: (name) => {
      const [, repository, tag] = /^(.+):([^:]+)$/.exec(name) ?? []
      return requests.filter(({ path }) => path.startsWith(`/v2/${repository}/manifests/${tag}`)).length
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
