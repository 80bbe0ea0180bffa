/**
 * A small extension API server, run in a process of its own: wardle.example.com/v1alpha1 with flunders, in memory. It trusts identity headers
 * from a front proxy only, and shows the user in each object's annotations. Configuration comes as JSON in the environment.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'

const { port, cert, key, proxyCa, aggregated } = JSON.parse(process.env.SAMPLE_SERVER ?? '{}')
const groupVersion = 'wardle.example.com/v1alpha1'
const root = `/apis/${groupVersion}`
const kind = { group: 'wardle.example.com', version: 'v1alpha1', kind: 'Flunder' }
const verbs = ['create', 'get', 'list', 'watch']

interface Flunder {
  kind: string
  apiVersion: string
  metadata: { name: string; namespace: string; resourceVersion: string; annotations?: Record<string, string> }
}

const flunders = new Map<string, Flunder>()
const watchers = new Set<ServerResponse>()
let revision = 1

const groupDiscovery = {
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items: [
    {
      metadata: { name: kind.group },
      versions: [
        {
          version: kind.version,
          freshness: 'Current',
          resources: [{ resource: 'flunders', responseKind: kind, scope: 'Namespaced', singularResource: 'flunder', verbs, shortNames: ['fl'] }],
        },
      ],
    },
  ],
}
const resourceList = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion,
  resources: [{ name: 'flunders', singularName: 'flunder', namespaced: true, kind: 'Flunder', verbs, shortNames: ['fl'] }],
}
const path = `${root}/namespaces/{namespace}/flunders`
const openApiV2 = {
  swagger: '2.0',
  info: { title: 'sample', version: '1' },
  paths: { [path]: { get: { responses: { 200: { schema: { $ref: '#/definitions/com.example.Flunder' } } } } }, '/version/': { get: {} } },
  definitions: { 'com.example.Flunder': { type: 'object', description: 'A flunder.' }, 'com.example.Unused': { type: 'object' } },
}
const openApiV3 = { openapi: '3.0.0', info: { title: 'sample', version: '1' }, paths: { [path]: {} }, components: {} }

function json(response: ServerResponse, value: unknown, status = 200, contentType = 'application/json'): ServerResponse {
  return response.writeHead(status, { 'content-type': contentType }).end(JSON.stringify(value))
}

function answer(request: IncomingMessage, response: ServerResponse): ServerResponse {
  if (!(request.socket as TLSSocket).authorized) return json(response, status(401, 'Unauthorized'), 401)
  const [pathname = '', query = ''] = (request.url ?? '').split('?')
  const documents: Record<string, unknown> = {
    [root]: resourceList,
    '/openapi/v2': openApiV2,
    '/openapi/v3': { paths: { [`apis/${groupVersion}`]: { serverRelativeURL: `/openapi/v3/apis/${groupVersion}?hash=ABC` } } },
    [`/openapi/v3/apis/${groupVersion}`]: openApiV3,
  }
  if (pathname === '/apis' && aggregated && String(request.headers.accept).includes('apidiscovery')) return discovery(request, response)
  if (documents[pathname]) return json(response, documents[pathname])
  const [, namespace, name] = new RegExp(`^${root}(?:/namespaces/([^/]+))?/flunders(?:/([^/]+))?$`).exec(pathname) ?? []
  if (!pathname.startsWith(root)) return json(response, status(404, 'NotFound'), 404)
  if (request.method === 'POST') return create(request, response, namespace ?? '')
  if (name === 'whoami') return json(response, { kind: 'Flunder', apiVersion: groupVersion, headers: request.headersDistinct })
  if (name) return flunders.has(name) ? json(response, flunders.get(name)) : json(response, status(404, 'NotFound'), 404)
  if (new URLSearchParams(query).get('watch')) return watch(response)
  return json(response, { kind: 'FlunderList', apiVersion: groupVersion, metadata: { resourceVersion: String(revision) }, items: [...flunders.values()] })
}

function discovery(request: IncomingMessage, response: ServerResponse): ServerResponse {
  const etag = '"discovery-1"'
  if (request.headers['if-none-match'] === etag) return response.writeHead(304).end()
  response.setHeader('etag', etag)
  return json(response, groupDiscovery, 200, 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
}

function status(code: number, reason: string) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: `sample: ${reason}`, code }
}

function create(request: IncomingMessage, response: ServerResponse, namespace: string): ServerResponse {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const sent = JSON.parse(Buffer.concat(chunks).toString())
    const annotations = { user: String(request.headers['x-remote-user']) }
    const object: Flunder = {
      kind: 'Flunder',
      apiVersion: groupVersion,
      metadata: { name: sent.metadata.name, namespace, resourceVersion: String(++revision), annotations },
    }
    flunders.set(object.metadata.name, object)
    for (const watcher of watchers) watcher.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    json(response, object, 201)
  })
  return response
}

function watch(response: ServerResponse): ServerResponse {
  watchers.add(response)
  response.on('close', () => watchers.delete(response))
  response.writeHead(200, { 'content-type': 'application/json' })
  for (const object of flunders.values()) response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
  response.flushHeaders()
  return response
}

const server = createServer({ cert, key, ca: proxyCa, requestCert: true, rejectUnauthorized: false }, answer)
server.on('upgrade', (request, socket, head) => {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${request.headers.upgrade}\r\n\r\n${request.headers['x-remote-user']}\n`)
  socket.write(head)
  socket.pipe(socket)
})
server.listen(port, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
