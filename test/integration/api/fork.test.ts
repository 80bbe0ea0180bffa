/** A fork (X5): the objects of a revision of one API server are created in another one, which calls nothing outside of itself. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { Unstructured } from '#api/machinery/meta'
import { isStatus, StatusError } from '#api/machinery/status'
import { copyPast, type ForkReport } from '#cli/past/fork'
import { servePast } from '#cli/past/pastServer'
import { configMaps, validatingWebhookConfigurations } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import type { Transport } from '#client/transport'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { definition, establish, group, version } from '../crd/support.ts'
import { rawHttp } from './rawHttp.ts'

const servers: TestApiServer[] = []
const transports: HttpTransport[] = []

async function start(): Promise<Transport> {
  const api = await startTestApiServer()
  servers.push(api)
  const { url, ca, token } = await api.listen()
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, exactIntegers: true })
  transports.push(transport)
  return transport
}

let old: Transport
let revision: number
const long = 9007199254740993n
const ledgers = { group, version: 'v1', resource: 'ledgers', kind: 'Ledger', namespaced: true } as const
const clientConfig = { url: 'https://127.0.0.1:1/live' }

before(async () => {
  old = await start()
  const client = createClient(old)
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
  const crd = definition('ledgers', 'Ledger', [version('v1', schema)])
  const conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
  await establish(client, { ...crd, spec: { ...crd.spec, conversion } } as typeof crd)
  const ledger = { apiVersion: `${group}/v1`, kind: 'Ledger', metadata: { namespace: 'default', name: 'a' }, count: long }
  const owner = await client.of<Unstructured>(ledgers).create(ledger as unknown as Unstructured)
  const owned = { apiVersion: `${group}/v1`, kind: 'Ledger', name: 'a', uid: owner.metadata.uid ?? '' }
  await client.of(configMaps).create({ metadata: { namespace: 'default', name: 'owned', ownerReferences: [owned] } })
  const hook = { name: 'a.live.io', clientConfig, rules: [], admissionReviewVersions: ['v1'], sideEffects: 'None' }
  const last = await client.of(validatingWebhookConfigurations).create({ metadata: { name: 'live' }, webhooks: [hook] })
  revision = Number(last.metadata.resourceVersion)
})

after(async () => {
  await Promise.all(transports.map((transport) => transport.close()))
  await Promise.all(servers.map((server) => server.close()))
})

const copy = (to: Transport): Promise<ForkReport> =>
  copyPast({ transport: old, revision, explain: (error) => new Error('read', { cause: error }) }, to, realClock)

test('X5 a fork keeps long integers, links owners, and has neither webhooks nor conversions by programs of the old cluster', async () => {
  const fork = await start()
  const { failed, left } = await copy(fork)
  assert.deepEqual([failed, left.get('calling programs outside of the fork')], [[], 1])
  const client = createClient(fork)
  const ledger = await client.of<Unstructured>(ledgers).get({ namespace: 'default', name: 'a' })
  assert.equal(ledger.count, long)
  assert.equal((await client.of(configMaps).get({ namespace: 'default', name: 'owned' })).metadata.ownerReferences?.[0]?.uid, ledger.metadata.uid)
  assert.deepEqual((await client.of(validatingWebhookConfigurations).list()).items, [])
  const crd = await fork.request({ method: 'GET', path: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ledgers.${group}` })
  assert.equal((crd.body as { spec: { conversion?: { strategy?: string } } }).spec.conversion?.strategy, 'None')
})

test('X5 one object of the past has its long integers', async () => {
  const certificate = await testCertificates()
  const server = await servePast({ transport: transports[0] as HttpTransport, revision, certificate })
  const target = { url: server.url, port: Number(new URL(server.url).port), ca: certificate.cert, token: server.token }
  const answer = await rawHttp(target, { method: 'GET', path: `/apis/${group}/v1/namespaces/default/ledgers/a` })
  await server.close()
  assert.match(answer.body.toString(), /"count":9007199254740993[,}]/)
})

test('X5 an owner that the fork refuses to link is reported, and the other objects are copied', async () => {
  const fork = await start()
  const refusing: Transport = {
    ...fork,
    request: async (request, signal) => {
      if (request.method === 'PATCH') throw new StatusError('Forbidden', 'no owners here')
      return fork.request(request, signal)
    },
  }
  assert.deepEqual((await copy(refusing)).failed, ['configmaps default/owned: no owners here'])
})

test('X5 a revision that is compacted while it is copied fails as a read of the old cluster', async () => {
  const fork = await start()
  const later = await createClient(old)
    .of(configMaps)
    .create({ metadata: { namespace: 'default', name: 'later' } })
  await servers[0]?.store.compact(Number(later.metadata.resourceVersion))
  await assert.rejects(copy(fork), (error: Error) => error.message === 'read' && isStatus(error.cause, 'Expired'))
})
