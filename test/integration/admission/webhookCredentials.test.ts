/** ADM-02, ADM-03 on a server set up by flags: the credentials for webhooks, from the kubeconfig of the admission configuration. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { WebhookClientConfig } from '#api/gen/types/admissionregistration.v1'
import type { TestApiServer } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { type OpenSsl, openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { startWebhookServer, type WebhookServer } from '../../support/webhookServer.ts'
import { type Plain, plain } from '../crd/support.ts'
import { configMap, configMaps, configurationPath, webhook } from './cluster.ts'

let files: OpenSsl
let hooks: WebhookServer
let api: TestApiServer
let request: Plain['request']

before(async () => {
  files = openSsl()
  hooks = await startWebhookServer(['hook.default.svc', 'other.default.svc', 'far.kube-system.svc'])
  const { cert, key } = await testCertificates('CN=the-api-server')
  const port = hooks.port
  const users = [
    { name: `hook.default.svc:${port}`, user: { token: 'exact' } },
    { name: `*.default.svc:${port}`, user: { tokenFile: 'token' } },
    { name: `127.0.0.1:${port}`, user: { username: 'me', password: 'word' } },
    { name: '*', user: { 'client-certificate': 'client.crt', 'client-key-data': Buffer.from(key).toString('base64') } },
  ]
  files.file('token', 'of-a-suffix\n')
  files.file('client.crt', cert)
  const kubeConfigFile = files.file('kubeconfig', JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }))
  const configuration = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'WebhookAdmissionConfiguration', kubeConfigFile }
  const plugins = [{ name: 'ValidatingAdmissionWebhook', configuration }]
  const file = files.file('admission.json', JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins }))
  api = await startServerWithFlags([`--admission-control-config-file=${file}`])
  request = plain(api.clientAs({ name: 'root', groups: ['system:masters', 'system:authenticated'] })).request
  // The API allows no loopback address in slices, so an external name stands for the endpoints.
  for (const [namespace, name] of [
    ['default', 'hook'],
    ['default', 'other'],
    ['kube-system', 'far'],
  ])
    await request('POST', `/api/v1/namespaces/${namespace}/services`, { metadata: { name }, spec: { type: 'ExternalName', externalName: 'localhost' } })
})
after(async () => {
  await api?.close()
  await hooks?.close()
  files?.remove()
})

interface Case {
  readonly name: string
  readonly kind: 'mutating' | 'validating'
  readonly client: (port: number, path: string) => WebhookClientConfig
  readonly authorization?: string
  readonly peer?: string
}
const service =
  (name: string, namespace = 'default') =>
  (port: number, path: string) => ({ service: { namespace, name, port, path } })
const url = (host: string) => (port: number, path: string) => ({ url: `https://${host}:${port}${path}` })
const cases: readonly Case[] = [
  { name: 'by its name and port: a token', kind: 'validating', client: service('hook'), authorization: 'Bearer exact' },
  { name: 'by the end of its name: a token in a file', kind: 'validating', client: service('other'), authorization: 'Bearer of-a-suffix' },
  { name: 'by its URL: a password', kind: 'validating', client: url('127.0.0.1'), authorization: `Basic ${Buffer.from('me:word').toString('base64')}` },
  { name: 'any other service: a certificate', kind: 'validating', client: service('far', 'kube-system'), peer: 'the-api-server' },
  { name: 'any other URL: a certificate', kind: 'validating', client: url('localhost'), peer: 'the-api-server' },
  { name: 'a kind of webhooks without a kubeconfig: nothing', kind: 'mutating', client: service('hook') },
]
for (const [at, { name, kind, client, authorization, peer }] of cases.entries()) {
  test(`ADM-02 ADM-03: who asks a webhook, ${name}`, async () => {
    const path = `/hook-${at}`
    hooks.on(path, () => ({ allowed: true }))
    const { caBundle } = hooks.client(path)
    const clientConfig = { ...client(hooks.port, path), caBundle }
    await request('POST', configurationPath(kind), { metadata: { name: `hook-${at}` }, webhooks: [webhook(hooks, path, { clientConfig })] })
    await request('POST', configMaps(), configMap(`c${at}`))
    await request('DELETE', configurationPath(kind, `hook-${at}`))
    const asked = hooks.asked.filter((one) => one.url.startsWith(path))
    assert.deepEqual(
      asked.map(({ headers, peer }) => [headers.authorization, peer, headers['user-agent']]),
      [[authorization, peer, 'kube-apiserver-admission']],
    )
  })
}
