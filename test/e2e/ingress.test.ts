/**
 * Ingresses on two real nodes: hosts, paths and TLS lead to Pods, a rolling update costs no request, and turning the ingress off leaves nothing. Real
 * containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { after, before, test } from 'node:test'
import { testCertificates } from '#testing/testCertificates'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-ing'
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2', '--ingress'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
})

after(async () => {
  if (!skip) await cluster?.delete()
})

/** Serves its app's name on every path that the tests ask for. It ends some time after its Pod has left the endpoints. */
const serve = (app: string, version: string) => [
  'sh',
  '-c',
  `mkdir -p /www/api /www/cgi-bin; for f in index.html api/index.html; do echo ${app} ${version} >/www/$f; done; printf '#!/bin/sh\\nprintf "Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n"\\necho $HTTP_X_FORWARDED_FOR $HTTP_X_FORWARDED_PROTO $HTTP_HOST\\n' >/www/cgi-bin/who; chmod +x /www/cgi-bin/who; httpd -f -p 8080 -h /www & trap "sleep 2; exit 0" TERM; wait`,
]

function app(of: string, version = 'one') {
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: serve(of, version),
    ports: [{ containerPort: 8080, name: 'http' }],
    readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
  }
  const template = { metadata: { labels: { app: of } }, spec: { terminationGracePeriodSeconds: 5, containers: [container] } }
  return [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: of }, spec: { replicas: 2, selector: { matchLabels: { app: of } }, template } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: of }, spec: { selector: { app: of }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] } },
  ]
}

const backend = (of: string, port: object = { number: 80 }) => ({ service: { name: of, port } })
const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web' },
  spec: {
    tls: [{ hosts: ['app.example.test'], secretName: 'web-tls' }],
    rules: [
      {
        host: 'app.example.test',
        http: {
          paths: [
            { path: '/api', pathType: 'Prefix', backend: backend('api', { name: 'http' }) },
            { path: '/', pathType: 'Prefix', backend: backend('web') },
          ],
        },
      },
    ],
  },
}

async function secret() {
  const { cert, key } = await testCertificates('CN=app.example.test', ['app.example.test'])
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web-tls' }, type: 'kubernetes.io/tls', stringData: { 'tls.crt': cert, 'tls.key': key } }
}

const apply = (...items: unknown[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])

interface Answer {
  readonly status: number
  readonly body: string
  readonly certificate: string
}

async function ask(
  path: string,
  { scheme = 'http', at = '127.0.0.1', host = 'app.example.test', agent = undefined as http.Agent | undefined } = {},
): Promise<Answer> {
  const [library, port] = scheme === 'http' ? [http, 80] : [https, 443]
  const request = library.request({
    host: at,
    port,
    path,
    headers: { host },
    timeout: 5000,
    agent: agent ?? false,
    ...(scheme === 'http' ? {} : { servername: host, rejectUnauthorized: false }),
  })
  request.end()
  request.on('timeout', () => request.destroy(new Error('no answer')))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const { subject } =
    'getPeerCertificate' in response.socket
      ? (response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }).getPeerCertificate()
      : { subject: { CN: '' } }
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode ?? 0, body: body.trim(), certificate: String(subject?.CN) }
}

const silent = (error: Error): Answer => ({ status: 0, body: error.message, certificate: '' })

test(
  'ING-01 ING-02 the Ingress of the reference documents leads by host and path to Pods, with TLS, from localhost and each node’s address',
  options,
  async () => {
    await apply(...app('web'), ...app('api'), await secret(), ingress)
    await cluster.must(['rollout', 'status', 'deployment/web', 'deployment/api', '--timeout=60s'])
    const nodes = (await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}'])).split(' ')
    for (const at of ['127.0.0.1', ...nodes]) {
      for (const scheme of ['http', 'https']) {
        const expected = (path: string, text: string) =>
          eventually(
            `${text} of ${scheme}://${at}${path}`,
            15_000,
            () => ask(path, { scheme, at }).catch(silent),
            ({ status, body }) => status === 200 && body === text,
          )
        await expected('/', 'web one')
        await expected('/index.html', 'web one')
        await expected('/api/', 'api one')
      }
    }
    assert.equal((await ask('/apiary')).status, 404)
    assert.deepEqual(await ask('/', { host: 'other.test' }), { status: 404, body: 'default backend - 404', certificate: '' })
    assert.equal((await ask('/', { scheme: 'https' })).certificate, 'app.example.test')
    assert.equal((await ask('/', { scheme: 'https', host: 'other.test' })).certificate, 'skiff-ingress-default')
  },
)

test('ING-01 the class is the default one, and the Ingress has the addresses of the nodes', options, async () => {
  assert.equal(await cluster.must(['get', 'ingress', 'web', '-o', 'jsonpath={.spec.ingressClassName}']), 'skiff')
  const addresses = await eventually(
    'addresses in the status',
    15_000,
    () => cluster.must(['get', 'ingress', 'web', '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}']),
    (text) => text.split(' ').length === 2,
  )
  assert.equal(addresses, await cluster.must(['get', 'service', '-n', 'skiff-ingress', 'skiff-ingress', '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}']))
})

test('ING-02 the backend sees where the request came from', options, async () => {
  assert.match((await ask('/cgi-bin/who')).body, /^10\.\d+\.\d+\.\d+ http app\.example\.test$/)
  assert.match((await ask('/cgi-bin/who', { scheme: 'https' })).body, / https app\.example\.test$/)
})

test('ING-02 a changed certificate and a changed path apply without a restart', options, async () => {
  const pids = async () => (await cluster.skiff(['status', name, '-o', 'json'])).stdout.match(/"role": "ingress",\s+"pid": \d+/g)
  const running = await pids()
  assert.equal(running?.length, 2)
  const { cert, key } = await testCertificates('CN=renewed', ['app.example.test'])
  await apply({ ...(await secret()), stringData: { 'tls.crt': cert, 'tls.key': key } })
  await eventually(
    'the new certificate',
    10_000,
    () => ask('/', { scheme: 'https' }).catch(silent),
    ({ certificate }) => certificate === 'renewed',
  )
  await cluster.must(['patch', 'ingress', 'web', '--type=json', '-p', '[{"op":"replace","path":"/spec/rules/0/http/paths/0/pathType","value":"Exact"}]'])
  await eventually(
    'the changed path',
    10_000,
    () => ask('/api/').catch(silent),
    ({ body }) => body === 'web one',
  )
  assert.deepEqual(await pids(), running)
})

test('ING-02 2,000 requests during a rolling update all succeed', { ...options, timeout: 120_000 }, async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
  await apply(...app('web', 'two'))
  let finished = false
  const rollout = cluster.must(['rollout', 'status', 'deployment/web', '--timeout=90s']).finally(() => {
    finished = true
  })
  const failures: string[] = []
  const seen = new Map<string, number>()
  let count = 0
  const client = async () => {
    while (count < 2000 || !finished) {
      count++
      const { status, body } = await ask('/', { agent }).catch(silent)
      seen.set(body, (seen.get(body) ?? 0) + 1)
      if (status !== 200) failures.push(`${status} ${body}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  await Promise.all([rollout, ...Array.from({ length: 8 }, client)])
  agent.destroy()
  assert.deepEqual(failures, [])
  assert.ok(count >= 2000)
  assert.deepEqual([...seen.keys()].sort(), ['web one', 'web two'])
})

test('ING-02 an ingress process that is killed is started again', options, async () => {
  const pids = async () =>
    [...(await cluster.skiff(['status', name, '-o', 'json'])).stdout.matchAll(/"role": "ingress",\s+"pid": (\d+)/g)].map(([, pid]) => Number(pid))
  const killed = await pids()
  for (const pid of killed) process.kill(pid, 'SIGKILL')
  await eventually('other processes', 15_000, pids, (now) => now.length === 2 && now.every((pid) => !killed.includes(pid)))
  await eventually(
    'an answer',
    15_000,
    () => ask('/').catch(silent),
    ({ status }) => status === 200,
  )
})

test('ING-01 turning the ingress off removes its class, its namespace, its rights and the addresses; turning it on brings it back', {
  ...options,
  timeout: 120_000,
}, async () => {
  const off = await cluster.skiff(['addon', 'disable', 'ingress', '--cluster', name])
  assert.equal(off.code, 0, off.stderr)
  assert.equal(await cluster.must(['get', 'ingressclass', '-o', 'name']), '')
  assert.equal(await cluster.must(['get', 'clusterrole,clusterrolebinding', 'skiff:ingress', '--ignore-not-found', '-o', 'name']), '')
  assert.equal(await cluster.must(['get', 'ingress', 'web', '-o', 'jsonpath={.status.loadBalancer.ingress}']), '')
  assert.equal((await ask('/').catch(silent)).status, 0)
  const on = await cluster.skiff(['addon', 'enable', 'ingress', '--cluster', name])
  assert.equal(on.code, 0, on.stderr)
  await eventually(
    'an answer',
    15_000,
    () => ask('/').catch(silent),
    ({ status }) => status === 200,
  )
})

test('ARC-04 deleting the cluster leaves nothing on the host', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
