/** Requests that are forwarded to a kubelet, a pod or a service. The kubelet here is a small server that answers with what it got. */
import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import test, { after, before } from 'node:test'
import { connect } from 'node:tls'
import type { Pod } from '#api/gen/types/core.v1'
import { nodes, pods } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { rawHttp } from './rawHttp.ts'

let api: TestApiServer
let listener: TestListener
let kubelet: ReturnType<typeof createServer>

before(async () => {
  const serving = await testCertificates()
  const client = await testCertificates()
  kubelet = createServer({ ...serving, requestCert: true, rejectUnauthorized: false, ca: client.cert }, (request, response) => {
    const peer = (request.socket as unknown as { authorized: boolean }).authorized
    if (request.url?.includes('starting')) {
      response.writeHead(400).end('container "c" in pod "starting" is waiting to start: ContainerCreating')
      return
    }
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.end(`${request.method} ${request.url} client certificate ${peer ? 'good' : 'missing'} authorization ${request.headers.authorization ?? 'none'}`)
  })
  kubelet.on('upgrade', (request, socket) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n${request.url}\n`)
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve))
  api = await startTestApiServer({ kubelet: client })
  listener = await api.listen()
  const kubeletPort = (kubelet.address() as AddressInfo).port
  await api.client.of(nodes).create({
    metadata: { name: 'n1' },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }], daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } } },
  })
  for (const name of ['p', 'starting']) await scheduledPod(name)
})
after(async () => {
  await api.close()
  kubelet.close()
})

async function scheduledPod(name: string): Promise<void> {
  const containers: NonNullable<Pod['spec']>['containers'] = [{ name: 'c', image: 'x' }]
  if (name === 'p') containers.push({ name: 'second', image: 'x' })
  await api.client.of(pods).create({ metadata: { namespace: 'default', name }, spec: { containers } })
  await api.client.of(pods).createSubresource({ namespace: 'default', name }, 'binding', { target: { kind: 'Node', name: 'n1' } })
}

const pod = '/api/v1/namespaces/default/pods'
const text = async (path: string) => (await rawHttp(listener, { path })).body.toString()

test('API-24 logs are read from the pod’s kubelet, which gets our certificate and not the caller’s token', async () => {
  assert.equal(
    await text(`${pod}/p/log?container=c&tailLines=3&timestamps=true`),
    'GET /containerLogs/default/p/c?timestamps=true&tailLines=3 client certificate good authorization none',
  )
})

test('API-24 logs that cannot be are refused in upstream words', async () => {
  const message = async (path: string) => JSON.parse(await text(path)).message
  assert.equal(await message(`${pod}/p/log`), 'a container name must be specified for pod p, choose one of: [c second]')
  assert.equal(await message(`${pod}/p/log?container=no`), 'container no is not valid for pod p')
  assert.equal(await message(`${pod}/starting/log`), 'container "c" in pod "starting" is waiting to start: ContainerCreating')
  assert.equal(await message(`${pod}/none/log`), 'pods "none" not found')
})

test('API-24 exec is tunnelled to the kubelet after its 101', async () => {
  const answer = await upgrade(`${pod}/p/exec?container=c&command=ls&command=-l&stdin=true&stdout=true`, 'ping')
  assert.match(answer, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
  assert.ok(answer.endsWith('\r\n\r\n/exec/default/p/c?input=1&output=1&command=ls&command=-l\nping'), answer)
})

test('API-24 exec without an upgrade is refused', async () => {
  const { status, body } = await rawHttp(listener, { method: 'POST', path: `${pod}/p/exec?container=c&command=ls&stdout=true` })
  assert.deepEqual([status, JSON.parse(body.toString()).message], [400, 'Upgrade request required'])
})

/** Sends a WebSocket upgrade and some bytes, and returns what came back until they were echoed. */
function upgrade(path: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: listener.port, ca: listener.ca, ALPNProtocols: ['http/1.1'] }, () => {
      const head = [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket', `Authorization: Bearer ${listener.token}`]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
    })
    let received = ''
    socket.on('data', (chunk) => {
      const first = !received.includes('\r\n\r\n')
      received += chunk.toString()
      if (first && received.includes('\r\n\r\n')) socket.write(bytes)
      if (received.endsWith(bytes)) {
        socket.destroy()
        resolve(received)
      }
    })
    socket.on('error', reject)
    socket.on('end', () => reject(new Error(`closed early: ${received}`)))
  })
}
