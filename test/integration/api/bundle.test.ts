/** A bundle of a cluster and the server that shows it (X18): what is in it, what is not, and that it changes nothing and connects to nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Authenticator } from '#apiserver/authn/authenticator'
import type { Authorizer } from '#apiserver/authz/authorizer'
import { textAnswer } from '#apiserver/core/answer'
import type { UserInfo } from '#apiserver/core/request'
import { changesPage } from '#apiserver/endpoints/changes'
import { openBundle } from '#cli/bundle/bundleReader'
import { BundleWriter } from '#cli/bundle/bundleWriter'
import { type BundleOptions, type WrittenBundle, writeBundle } from '#cli/bundle/writeBundle'
import type { Bundles, StillServer } from '#cli/bundles'
import type { CommandContext } from '#cli/command'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import type { Transport } from '#client/transport'
import { createBundles } from '#main/bundle/bundles'
import type { LocalClusterDeps } from '#main/localCluster/deps'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock as clock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'

const code = 'open-sesame-4711'
const oldCode = 'old-sesame-4711'
const configMaps = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true }
const pods = { ...configMaps, resource: 'pods', kind: 'Pod' }
const secrets = { ...configMaps, resource: 'secrets', kind: 'Secret' }
const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions', kind: 'CustomResourceDefinition', namespaced: false }
const boats = { group: 'example.com', version: 'v1', resource: 'boats', kind: 'Boat', namespaced: true }
const place = (name: string) => ({ namespace: 'default', name })
const made = (kind: { readonly kind: string; readonly group: string; readonly version: string }, name: string, members: Record<string, unknown>) =>
  ({ apiVersion: kind.group === '' ? 'v1' : `${kind.group}/${kind.version}`, kind: kind.kind, metadata: place(name), ...members }) as unknown as Unstructured

const users: Readonly<Record<string, UserInfo>> = { 'Bearer admin': { name: 'admin', groups: [] }, 'Bearer limited': { name: 'limited', groups: [] } }
const bearer: Authenticator = {
  name: 'bearer',
  authenticate: ({ headers }) => {
    const user = users[String(headers.authorization)]
    return user && { decision: 'authenticated', user }
  },
}
const open = new Set(['configmaps', 'namespaces'])
/** One user reads config maps and namespaces, all others everything. */
const limited: Authorizer = {
  name: 'limited',
  authorize: ({ user, isResourceRequest, resource, path }) => {
    const isAllowed = user.name !== 'limited' || (isResourceRequest ? open.has(resource) : /^\/(api|version|skiff\/revisions|skiff\/changes)/.test(path))
    return { decision: isAllowed ? 'allow' : 'noOpinion', reason: '' }
  },
}

let folder: string
let cluster: TestApiServer
let transport: HttpTransport
let limitedTransport: HttpTransport
let bundles: Bundles
let file: string
let written: WrittenBundle
let server: StillServer
let shown: HttpTransport
let first: number
let webhook: net.Server
let connections = 0
const directories: string[] = []

const directory = async () => {
  const made = await fs.mkdtemp(path.join(folder, 'part-'))
  directories.push(made)
  return made
}

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-bundle-'))
  webhook = net.createServer((socket) => {
    connections++
    socket.destroy()
  })
  webhook.listen(0, '127.0.0.1')
  await once(webhook, 'listening')
  const store = createMemoryStore({ clock })
  cluster = await startTestApiServer({
    store,
    clock,
    deps: (registry) => ({
      authenticators: [bearer],
      authorizers: [limited],
      pages: [changesPage({ store, registry, authorizers: [limited] })],
      scrape: async () => ({ contentType: 'text/plain', body: `leaked{code="${code}"} 1\n` }),
      subresources: {
        '/pods/log': {
          get: ({ request: { query } }) => textAnswer(200, `2026-01-31T14:03:00.1Z ${query.get('container')} starts\n2026-01-31T14:03:01.2Z code is ${code}\n`),
        },
      },
    }),
  })
  await fill(cluster, (webhook.address() as net.AddressInfo).port)
  const { url, ca } = await cluster.listen()
  const transportAs = (bearerToken: string) => createHttpTransport({ server: url, bearerToken, tls: { ca }, clock, exactIntegers: true })
  transport = transportAs('admin')
  limitedTransport = transportAs('limited')
  const { cert, key } = await testCertificates()
  const certificate = async () => ({ cert, key, ca: cert })
  bundles = createBundles({ clock, home: folder } as unknown as LocalClusterDeps, { certificate })
  file = path.join(folder, 'lab.skiff')
  written = await write({}, file)
  const served = await bundles.serve(file)
  server = served
  shown = createHttpTransport({ server: served.url, bearerToken: served.token, tls: { ca: served.ca }, clock, exactIntegers: true })
})
after(async () => {
  await shown?.close()
  await server?.close()
  await transport?.close()
  await limitedTransport?.close()
  await cluster?.close()
  webhook?.close()
  await fs.rm(folder, { recursive: true })
})

async function write(options: Partial<BundleOptions>, to: string, host: object = {}): Promise<WrittenBundle> {
  const places = [await directory(), await directory()]
  const own = { clock, platform: 'none', bundles, ifInterrupted: () => {}, local: { directory: () => places.shift() } }
  const context = { ...own, ...host } as unknown as CommandContext
  return writeBundle(context, { transport, cluster: 'lab', local: undefined, isStopped: false, historyMs: undefined, withSecrets: false, ...options }, to)
}

async function fill({ client }: TestApiServer, port: number): Promise<void> {
  const created = await client.of<Unstructured>(configMaps).create(made(configMaps, 'prices', { data: { tea: '3' } }))
  first = Number(created.metadata.resourceVersion)
  await client.of<Unstructured>(secrets).create(made(secrets, 'door', { stringData: { code: oldCode } }))
  await client.of<Unstructured>(secrets).patch(place('door'), 'merge', { stringData: { code } })
  await client.of<Unstructured>(configMaps).create(made(configMaps, 'copied', { data: { url: `http://x/?code=${code}`, was: `${oldCode}!` } }))
  await client.of<Unstructured>(configMaps).patch(place('prices'), 'merge', { data: { tea: '4' } })
  await client.of<Unstructured>(configMaps).create(made(configMaps, 'gone', { data: { a: 'b' } }))
  await client.of<Unstructured>(configMaps).delete(place('gone'))
  const pod = await client.of<Unstructured>(pods).create(made(pods, 'web', { spec: { nodeName: 'n', containers: [{ name: 'main', image: 'x' }] } }))
  const containerStatuses = [{ name: 'main', ready: true, restartCount: 0, image: 'x', imageID: '', state: { running: {} } }]
  await client.of<Unstructured>(pods).updateStatus({ ...pod, status: { phase: 'Running', containerStatuses } } as Unstructured)
  const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: `https://127.0.0.1:${port}/` } } }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const versions = ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === 'v1', schema }))
  const spec = { group: 'example.com', scope: 'Namespaced', names: { plural: 'boats', singular: 'boat', kind: 'Boat' }, versions, conversion }
  await client.of<Unstructured>(definitions).create({ ...made(definitions, 'boats.example.com', { spec }), metadata: { name: 'boats.example.com' } })
  for (;;) {
    const boat = await client
      .of<Unstructured>(boats)
      .create(made(boats, 'skiff', { spec: { captain: '<img src=x onerror=alert(1)>' } }))
      .catch((error: unknown) => (isStatus(error, 'NotFound') ? undefined : Promise.reject(error)))
    if (boat) return
    await clock.sleep(20)
  }
}

const get = async (target: string, from: Transport = shown) => {
  const [path = '', query = ''] = target.split('?', 2)
  return (await from.request({ method: 'GET', path, query: Object.fromEntries(new URLSearchParams(query)) })).body as never as Record<string, unknown>
}
const dataAt = async (name: string, revision: number) => {
  const list = await get(`/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D${name}&resourceVersion=${revision}&resourceVersionMatch=Exact`)
  return (list.items as { data: Record<string, string> }[]).map(({ data }) => data)
}

test('X18 a bundle shows the objects with the revisions that they had', async () => {
  const [then, now] = await Promise.all([transport, shown].map((from) => createClient(from).of<Unstructured>(configMaps).get(place('prices'))))
  assert.deepEqual(now, then)
  const boat = await get('/apis/example.com/v1/namespaces/default/boats/skiff')
  assert.deepEqual(boat.spec, { captain: '<img src=x onerror=alert(1)>' })
})

test('X18 a bundle shows replaced and deleted versions, and when they were made', async () => {
  const { revision, oldestRevision } = written
  assert.ok(oldestRevision <= first, `${oldestRevision} <= ${first}`)
  assert.deepEqual(await dataAt('prices', first), [{ tea: '3' }])
  assert.deepEqual(await dataAt('prices', revision), [{ tea: '4' }])
  const history = await get(`/skiff/revisions?revisions=${first}`)
  assert.deepEqual([history.revision, history.oldestRevision], [revision, oldestRevision])
  assert.match(String((history.times as Record<string, string>)[first]), /^20/)
  const before = await Promise.all(Array.from({ length: revision - first }, (_, at) => dataAt('gone', first + at)))
  assert.ok(before.some(([data]) => data?.a === 'b'))
  assert.deepEqual(await dataAt('gone', revision), [])
})

test('X18 no value of a Secret is in the bytes of a bundle, in its history neither', async () => {
  const bundle = await openBundle(file)
  const found: string[] = []
  for (const { name } of bundle.index.parts) {
    const bytes = await bundle.read(name)
    for (const value of [code, oldCode])
      for (const form of [value, Buffer.from(value).toString('base64')]) if (bytes.includes(form)) found.push(`${form} in ${name}`)
  }
  await bundle.close()
  assert.deepEqual(found, [])
  assert.deepEqual(await dataAt('copied', written.revision), [{ url: 'http://x/?code=***', was: '***!' }])
  const { data } = await get('/api/v1/namespaces/default/secrets/door')
  assert.deepEqual(data, { code: Buffer.from('***').toString('base64') })
})

test('X18 the server of a bundle refuses writes and what needs a node, and says why', async () => {
  const refused = (method: 'POST' | 'DELETE', path: string, body?: unknown) =>
    assert.rejects(shown.request({ method, path, body }), (error: Error) => isStatus(error, 'Forbidden') && /a bundle is read-only/.test(error.message))
  await refused('DELETE', '/api/v1/namespaces/default/configmaps/prices')
  await refused('POST', '/api/v1/namespaces/default/configmaps', made(configMaps, 'new', {}))
  await assert.rejects(get('/api/v1/namespaces/default/pods/web/exec?command=sh'), /this needs the running cluster|is read-only/)
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'delete', resource: 'pods' } },
  }
  const { body } = await shown.request({ method: 'POST', path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body: review })
  assert.equal((body as { status: { allowed: boolean } }).status.allowed, false)
})

test('X18 the server of a bundle answers the holder of its token alone', async () => {
  const other = createHttpTransport({ server: server.url, bearerToken: 'wrong', tls: { ca: server.ca }, clock })
  await assert.rejects(get('/api/v1/pods', other), (error) => isStatus(error, 'Unauthorized') || isStatus(error, 'Forbidden'))
  await other.close()
})

test('X18 the server of a bundle calls no webhook of a definition', async () => {
  const before = connections
  assert.equal((await get('/apis/example.com/v2/namespaces/default/boats/skiff')).apiVersion, 'example.com/v2')
  assert.equal(connections, before)
})

test('X18 a bundle shows the log of a container without secrets, and names the one it lacks', async () => {
  const log = async (query: string) => get(`/api/v1/namespaces/default/pods/web/log?${query}`)
  assert.equal(await log('container=main'), 'main starts\ncode is ***\n')
  assert.equal(await log('container=main&tailLines=1&timestamps=true'), '2026-01-31T14:03:01.2Z code is ***\n')
  await assert.rejects(log('container=other'), /the bundle has no log of container "other" in pod "web"/)
  assert.match(String(await get('/metrics')), /leaked\{code="\*\*\*"\}/)
})

test('X18 a bundle of a limited user has what the user may read, and names the rest', async () => {
  const own = path.join(folder, 'limited.skiff')
  const { missing, objects } = await write({ transport: limitedTransport }, own)
  const what = missing.map((one) => one.what)
  const wanted = ['objects of secrets', 'objects of pods', 'history of /registry/secrets/', 'logs of containers', 'metrics/apiserver.txt', 'traces.json']
  assert.deepEqual(
    wanted.filter((one) => !what.includes(one)),
    [],
    what.join(', '),
  )
  assert.ok(objects > 0)
  const served = await bundles.serve(own)
  const reading = createHttpTransport({ server: served.url, bearerToken: served.token, tls: { ca: served.ca }, clock })
  assert.deepEqual((await get('/api/v1/namespaces/default/configmaps/prices', reading)).data, { tea: '4' })
  assert.deepEqual((await get('/api/v1/secrets', reading)).items, [])
  await reading.close()
  await served.close()
})

test('X18 a bundle with secrets has them, and says so', async () => {
  const own = path.join(folder, 'secrets.skiff')
  assert.equal((await write({ withSecrets: true }, own)).isRedacted, false)
  const bundle = await openBundle(own)
  assert.ok((await bundle.read('store.db')).includes(Buffer.from(code).toString('base64')))
  await bundle.close()
  assert.equal((await fs.stat(own)).mode & 0o777, 0o600)
})

test('X18 changes are given between two revisions, of one kind if it is named, and without them refused', async () => {
  const changesOf = async (query: string) => {
    const { status, body } = await transport.forward({ method: 'GET', target: `/skiff/changes?${query}`, headers: {}, body: undefined })
    const text = Buffer.concat(await body.toArray()).toString()
    return status === 200
      ? text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as { type: string; object: Unstructured })
      : text
  }
  const range = `after=${first}&to=${written.revision}`
  const found = (await changesOf(`${range}&resource=configmaps`)) as { type: string; object: Unstructured }[]
  assert.deepEqual(
    found.filter(({ object }) => object.metadata.namespace === 'default').map(({ type, object }) => `${type} ${object.metadata.name}`),
    ['ADDED copied', 'MODIFIED prices', 'ADDED gone', 'DELETED gone'],
  )
  assert.match(String(await changesOf('after=x&to=5')), /after: expected a revision/)
  assert.match(String(await changesOf('after=1')), /to: expected a revision/)
})

test('X18 changes before the compaction are refused, since some of them are gone', async (t) => {
  const store = createMemoryStore({ clock })
  const own = await startTestApiServer({ store, clock, deps: (registry) => ({ pages: [changesPage({ store, registry, authorizers: [] })] }) })
  t.after(() => own.close())
  const { metadata } = await own.client.of<Unstructured>(configMaps).create(made(configMaps, 'short', { data: { a: 'b' } }))
  await own.client.of<Unstructured>(configMaps).delete(place('short'))
  const revision = await store.latestRevision()
  await store.compact(revision)
  const inProcess = own.server.transport(users['Bearer admin'] as UserInfo, 'test')
  const changes = (after: number) => inProcess.request({ method: 'GET', path: '/skiff/changes', query: { after: String(after), to: String(revision) } })
  await assert.rejects(changes(Number(metadata.resourceVersion) - 1), (error) => isStatus(error, 'Expired'))
})

test('X18 a server that does not tell changes gives its newest state, and the values of its Secrets are in no log', async (t) => {
  const own = await startTestApiServer({
    clock,
    deps: () => ({
      subresources: { '/pods/log': { get: () => textAnswer(200, '2026-01-31T14:03:00.1Z my young-sesame-4711 fell\n') } },
    }),
  })
  t.after(() => own.close())
  const client = own.client
  await client.of<Unstructured>(secrets).create(made(secrets, 'young', { stringData: { code: 'first-sesame-4711' } }))
  await client.of<Unstructured>(secrets).patch(place('young'), 'merge', { stringData: { code: 'young-sesame-4711' } })
  const pod = await client.of<Unstructured>(pods).create(made(pods, 'web', { spec: { nodeName: 'n', containers: [{ name: 'main', image: 'x' }] } }))
  const containerStatuses = [{ name: 'main', ready: true, restartCount: 0, image: 'x', imageID: '', state: { running: {} } }]
  await client.of<Unstructured>(pods).updateStatus({ ...pod, status: { phase: 'Running', containerStatuses } } as Unstructured)
  const { url, ca, token } = await own.listen()
  const ownTransport = createHttpTransport({ server: url, bearerToken: token, tls: { ca }, clock, exactIntegers: true })
  t.after(() => ownTransport.close())
  const to = path.join(folder, 'newest.skiff')
  const { revision, oldestRevision, missing } = await write({ transport: ownTransport }, to)
  assert.equal(oldestRevision, revision)
  assert.deepEqual(
    missing.filter(({ what }) => what === 'history').map(({ reason }) => reason),
    ['the server answers /skiff/changes with 404'],
  )
  const bundle = await openBundle(to)
  t.after(() => bundle.close())
  const log = bundle.index.parts.find(({ name }) => name.startsWith('logs/'))
  assert.match((await bundle.read(log?.name ?? '')).toString(), /my \*\*\* fell/)
})

test('X18 no value of a Secret is in the facts of the host and of the local cluster', async (t) => {
  const to = path.join(folder, 'local.skiff')
  const host = {
    platform: 'linux',
    exec: { run: async () => ({ code: 0, stdout: `version of ${code}`, stderr: '' }) },
    clusters: { status: async () => ({ directory: `/home/${code}` }), logFiles: async () => [] },
  }
  await write({ local: 'lab' }, to, host)
  const bundle = await openBundle(to)
  t.after(() => bundle.close())
  for (const [part, found] of [
    ['facts/doctor.json', /"check": "containerd"[^}]*"found": "version of \*\*\*"/],
    ['facts/status.json', /"directory": "\/home\/\*\*\*"/],
  ] as const) {
    const text = (await bundle.read(part)).toString()
    assert.match(text, found)
    assert.ok(!text.includes(code), part)
  }
})

test('X18 a bundle whose objects are damaged is refused', async () => {
  const bundle = await openBundle(file)
  const writer = new BundleWriter(await directory())
  await writer.add('store.db', Buffer.from('no database'))
  const damaged = path.join(folder, 'damaged.skiff')
  const handle = await fs.open(damaged, 'w+')
  await writer.finish(handle, bundle.index)
  await Promise.all([handle.close(), bundle.close()])
  await assert.rejects(bundles.serve(damaged), /no bundle, or a damaged one/)
})
