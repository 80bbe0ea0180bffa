/**
 * Addresses of simulated pods and Services are never connected to: proxy subresources, webhooks and APIServices that lead there say so at once, where a connection
 * would wait for its time-out or reach something else on the machine's networks.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { apiServices, configMaps, daemonSets, endpointSlices, nodes, pods, services, validatingWebhookConfigurations } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'

let cluster: TestCluster
let ip = ''

before(async () => {
  cluster = await startCluster({ clock: 'real', nodes: 2 })
  const { client } = cluster
  const container = { name: 'app', image: 'app:1', ports: [{ containerPort: 8443 }] }
  const name = { namespace: 'default', name: 'app' }
  await client.of(pods).create({ metadata: { ...name, labels: { app: 'app' } }, spec: { containers: [container] } } as never)
  await client.of(services).create({ metadata: name, spec: { selector: { app: 'app' }, ports: [{ port: 443, targetPort: 8443 }] } } as never)
  ip = await cluster.until(async () => (await client.of(pods).get(name)).status?.podIP)
})
after(() => cluster.close())

async function get(path: string, upgrade = false): Promise<HttpsAnswer> {
  const server = await cluster.listen()
  const switching = upgrade ? { connection: 'Upgrade', upgrade: 'websocket' } : {}
  return httpsCall(server, path, { headers: { authorization: `Bearer ${server.token}`, ...switching } })
}

const namespace = '/api/v1/namespaces/default'
const proxied = ['pods/app:8443', 'pods/https:app:8443', 'services/app:443', 'services/https:app:443']
for (const path of proxied) {
  for (const upgrade of [false, true]) {
    test(`API-29 ${upgrade ? 'an upgrade' : 'a request'} through the proxy of ${path}, whose pod is simulated, gets 503 and the reason`, async () => {
      const ask = () => get(`${namespace}/${path}/proxy/`, upgrade)
      const { status, json } = await cluster.until(async () => {
        const answer = await ask()
        return /no endpoints available/.test(answer.text) ? undefined : answer
      })
      assert.equal(status, 503, JSON.stringify(json))
      assert.ok(json.message.includes(`${ip} is the address of a simulated pod`), json.message)
    })
  }
}

test('API-29 a Service without a pod is refused by its cluster IP in a webhook’s URL, with the reason', async () => {
  const { client } = cluster
  const clusterIp = (await client.of(services).get({ namespace: 'default', name: 'app' })).spec.clusterIP ?? ''
  const hooks: readonly [string, object, string][] = [
    ['by-url', { url: `https://${clusterIp}/validate` }, `${clusterIp} is the cluster IP of a simulated cluster`],
    ['by-service', { service: { namespace: 'default', name: 'app', path: '/validate' } }, `${ip} is the address of a simulated pod`],
  ]
  for (const [name, clientConfig, reason] of hooks) {
    const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }]
    const webhook = { name: `${name}.example.test`, clientConfig, rules, sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 5 }
    await client.of(validatingWebhookConfigurations).create({ metadata: { name }, webhooks: [webhook] } as never)
    const error = await cluster.until(async () => {
      const thrown = await client
        .of(configMaps)
        .create({ metadata: { namespace: 'default', generateName: 'x-' } } as never)
        .then(
          () => undefined,
          (failure: Error) => failure,
        )
      return thrown
    })
    assert.match(error.message, new RegExp(`failed calling webhook "${name}.example.test".*${reason.replaceAll('.', '\\.')}`))
    await client.of(validatingWebhookConfigurations).delete({ name })
  }
})

test('API-28 an APIService of a simulated Service is not available, and its condition and requests name the reason', async () => {
  const { client } = cluster
  const name = 'v1.simulated.example.test'
  const spec = { group: 'simulated.example.test', version: 'v1', service: { namespace: 'default', name: 'app' }, insecureSkipTLSVerify: true }
  await client.of(apiServices).create({ metadata: { name }, spec: { ...spec, groupPriorityMinimum: 100, versionPriority: 100 } } as never)
  const condition = await cluster.until(async () => {
    const { status } = await client.of(apiServices).get({ name })
    return status?.conditions?.find(({ type, reason }) => type === 'Available' && reason === 'FailedDiscoveryCheck')
  })
  assert.equal(condition.status, 'False')
  assert.ok(condition.message?.includes(`${ip} is the address of a simulated pod`), condition.message)
  assert.equal((await get('/apis/simulated.example.test/v1')).status, 503)
})

test('NET-01 a Service over hostNetwork pods of simulated nodes has an endpoint for each node, which the API server refuses to dial', async () => {
  const { client } = cluster
  const addresses = (await client.of(nodes).list()).items.flatMap(({ status }) => status?.addresses?.filter(({ type }) => type === 'InternalIP') ?? [])
  const nodeIps = addresses.map(({ address }) => address).sort()
  assert.equal(new Set(nodeIps).size, 2)
  const name = { namespace: 'default', name: 'host' }
  const container = { name: 'app', image: 'app:1', ports: [{ containerPort: 9100, hostPort: 9100 }] }
  const labels = { app: 'host' }
  const template = { metadata: { labels }, spec: { hostNetwork: true, containers: [container] } }
  await client.of(daemonSets).create({ metadata: name, spec: { selector: { matchLabels: labels }, template } } as never)
  await client.of(services).create({ metadata: name, spec: { selector: labels, ports: [{ port: 9100 }] } } as never)
  const endpoints = await cluster.until(async () => {
    const slices = (await client.of(endpointSlices).list({ namespace: 'default', labelSelector: 'kubernetes.io/service-name=host' })).items
    const ready = slices.flatMap((slice) => slice.endpoints ?? []).filter(({ conditions }) => conditions?.ready)
    return ready.length === 2 ? ready.flatMap(({ addresses: own }) => own).sort() : undefined
  })
  assert.deepEqual(endpoints, nodeIps)
  const { status, json } = await get(`${namespace}/services/host:9100/proxy/`)
  assert.equal(status, 503)
  assert.match(json.message, /198\.18\.0\.\d is the address of a simulated node/)
})
