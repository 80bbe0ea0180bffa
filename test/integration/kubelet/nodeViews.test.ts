/** node.skiff.dev with kubelets of which some hang, flood or lie. The kubelets are small servers. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import test, { after, before } from 'node:test'
import { nodeViewGroup } from '#apiserver/endpoints/nodeViews'
import { nodes } from '#client/builtIn'
import { nodeViews } from '#kubelet/views/index'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { rawHttp } from '../api/rawHttp.ts'

const worker = { namespace: 'default', name: 'web', uid: 'u', stage: 'terminating', isWorking: true, isDeleted: false, graceSeconds: 30 }
const behaviours: Readonly<Record<string, (response: ServerResponse, request: IncomingMessage) => void>> = {
  well: (response) => response.end(JSON.stringify({ workers: [worker, { ...worker, name: 'db', stage: 'syncing', isWorking: false }] })),
  lying: (response) => {
    const metadata = { name: 'another', annotations: { a: 'b' }, finalizers: ['x'] }
    response.end(JSON.stringify({ kind: 'Secret', apiVersion: 'v1', metadata, extra: 1, workers: [{ ...worker, extra: { deep: 1 } }] }))
  },
  flooding: (response) => {
    const write = () => {
      if (!response.destroyed) response.write(' '.repeat(100_000), write)
    }
    write()
  },
  mistyped: (response) => response.end(JSON.stringify({ workers: 'none' })),
  failing: (response) => response.writeHead(500).end(),
  hanging: () => {},
}

const path = '/apis/node.skiff.dev/v1alpha1/podworkers'
let api: TestApiServer
const servers: ReturnType<typeof createServer>[] = []
const paths = new Set<string>()

before(async () => {
  const certificates = await testCertificates()
  api = await startTestApiServer({
    kubelet: certificates,
    prepare: (server) => server.addGroup(nodeViewGroup(nodeViews, { reader: server.reader, kubelets: server.kubelets, clock: realClock })),
  })
  for (const [name, answer] of Object.entries(behaviours)) {
    const server = createServer(certificates, (request, response) => {
      paths.add(request.url ?? '')
      answer(response, request)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const kubeletEndpoint = { Port: (server.address() as AddressInfo).port }
    const status = { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }], daemonEndpoints: { kubeletEndpoint } }
    await api.client.of(nodes).create({ metadata: { name, labels: { is: name } }, spec: {}, status })
  }
})
after(async () => {
  await api.close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

interface View {
  readonly metadata: object
  readonly workers?: readonly object[]
  readonly error?: string
}

const get = async (name: string) => (await api.client.transport.request({ method: 'GET', path: `${path}/${name}` })).body as View

test('KUB-17 a view has the name and labels of its node, and what its kubelet says', async () => {
  const { metadata, ...rest } = await get('well')
  const workers = [worker, { ...worker, name: 'db', stage: 'syncing', isWorking: false }]
  assert.deepEqual(rest, { kind: 'PodWorkers', apiVersion: 'node.skiff.dev/v1alpha1', workers })
  const { creationTimestamp: _, ...named } = metadata as { creationTimestamp: string }
  assert.deepEqual(named, { name: 'well', labels: { is: 'well' } })
  assert.deepEqual([...paths], ['/views/podworkers'])
  await assert.rejects(get('none'), { code: 404, message: 'podworkers.node.skiff.dev "none" not found' })
})

test('KUB-17 a kubelet cannot change the identity of its view, nor add to what the view has', async () => {
  const { metadata, workers, ...rest } = await get('lying')
  assert.deepEqual([(metadata as { name: string }).name, Object.keys(metadata)], ['lying', ['name', 'creationTimestamp', 'labels']])
  assert.deepEqual([workers, rest], [[worker], { kind: 'PodWorkers', apiVersion: 'node.skiff.dev/v1alpha1' }])
})

test('KUB-17 a list names the kubelets that did not answer and why, within 5 seconds, and has the others', async () => {
  const listener = await api.listen()
  const headers = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' }
  const begun = Date.now()
  const { columnDefinitions, rows } = JSON.parse(String((await rawHttp(listener, { path, headers })).body))
  assert.ok(Date.now() - begun < 9_000)
  assert.deepEqual(
    columnDefinitions.map(({ name }: { name: string }) => name),
    ['Name', 'Syncing', 'Terminating', 'Terminated', 'Working', 'Error'],
  )
  const errors = Object.fromEntries(rows.map(({ cells }: { cells: unknown[] }) => [cells[0], cells.slice(1)]))
  assert.deepEqual(errors.well, [1, 1, 0, 1, ''])
  assert.deepEqual(errors.lying, [0, 1, 0, 1, ''])
  assert.deepEqual(errors.failing, [0, 0, 0, 0, 'the kubelet answered 500'])
  assert.deepEqual(errors.flooding, [0, 0, 0, 0, 'the answer is larger than 1048576 bytes'])
  assert.deepEqual(errors.hanging, [0, 0, 0, 0, 'context deadline exceeded'])
  assert.match(errors.mistyped[4], /cannot unmarshal string/)
  const selected = await rawHttp(listener, { path: `${path}?labelSelector=is%3Dwell` })
  assert.equal(JSON.parse(String(selected.body)).items.length, 1)
})
