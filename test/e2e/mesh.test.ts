/**
 * What Istio and Linkerd need from a cluster, with the mesh of docs/examples/mesh in their place: an injecting webhook, rules in the pod's own network
 * namespace, certificates from the CSR API, native sidecars. Two real nodes; what crosses the wire between them is captured.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { transformSync } from 'esbuild'
import { connect } from 'skiff-kubernetes/client'
import { runControllers } from 'skiff-kubernetes/controller'
import { inject, type MeshOptions, meshSigner } from '../../docs/examples/mesh/controlPlane.ts'
import { openSsl } from '../support/openssl.ts'
import { startWebhookServer, type WebhookServer } from '../support/webhookServer.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 120_000 }
const shared = ['/usr', '/lib', '/lib64']
const nodeNames = ['e2e-mesh-node-1', 'e2e-mesh-node-2'] as const
const stop = new AbortController()
const ssl = openSsl()
let cluster: LocalCluster
let hooks: WebhookServer
let signer: Promise<unknown> = Promise.resolve()

/** Logs the path of each request, and answers with its header x-secret. */
const server = `require('http').createServer((request, response) => {
  console.log(request.url)
  response.end('secret ' + request.headers['x-secret'])
}).listen(8080)
process.on('SIGTERM', () => process.exit(0))`

const mountsOf = (prefix: string) => shared.map((mountPath, i) => ({ name: `${prefix}-${i}`, mountPath, readOnly: true }))
const volumesOf = (prefix: string) => shared.map((hostPath, i) => ({ name: `${prefix}-${i}`, hostPath: { path: hostPath } }))

function pod(namespace: string, name: string, nodeName: string, command: readonly string[], more: object = {}) {
  const container = { name: 'app', image: 'web-app:1.0', command, volumeMounts: mountsOf('app'), ...more }
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, labels: { app: name } } },
    spec: { nodeName, restartPolicy: 'Never', containers: [container], volumes: volumesOf('app') },
  }
}

const serverPod = (namespace: string) =>
  pod(namespace, 'server', nodeNames[0], [process.execPath, '-e', server], {
    ports: [{ containerPort: 8080 }],
    readinessProbe: { httpGet: { port: 8080, path: '/healthy' }, periodSeconds: 1 },
  })
const service = (namespace: string) => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'server' } },
  spec: { selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080 }] },
})
const asking = (namespace: string) => pod(namespace, 'client', nodeNames[1], ['sh', '-c', 'sleep 100000 & trap "exit 0" TERM; wait'])

const apply = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
const ready = (namespace: string, name: string) => cluster.must(['-n', namespace, 'wait', '--for=condition=Ready', `pod/${name}`, '--timeout=90s'], 100_000)
const logOf = (name: string) => cluster.must(['-n', 'shop', 'logs', name, '-c', 'app'])
const ask = (namespace: string, host: string, secret: string, urlPath = '/') =>
  cluster.kubectl([
    '-n',
    namespace,
    'exec',
    'client',
    '-c',
    'app',
    '--',
    'wget',
    '-q',
    '-T',
    '5',
    '-O',
    '-',
    '--header',
    `x-secret: ${secret}`,
    `http://${host}${urlPath}`,
  ])

async function startMesh(): Promise<void> {
  const authority = ssl.authority('mesh')
  const mesh: MeshOptions = {
    proxy: {
      ...{ image: 'web-app:1.0', command: [process.execPath, '/mesh/sidecar.mjs'] },
      volumeMounts: [...mountsOf('mesh'), { name: 'mesh-program', mountPath: '/mesh', readOnly: true }],
    },
    volumes: [...volumesOf('mesh'), { name: 'mesh-program', configMap: { name: 'mesh-sidecar' } }],
    ...{ nft: '/usr/sbin/nft', ca: authority.cert, mode: 'strict', outbound: [80] },
  }
  hooks = await startWebhookServer()
  hooks.on('/inject', (request) => inject(request, mesh))
  const connection = await connect({ kubeconfig: cluster.env.KUBECONFIG })
  const files = { keyFile: ssl.file('mesh.key', authority.key), certFile: ssl.file('mesh.crt', authority.cert) }
  signer = runControllers(connection, [meshSigner(files)], {}, stop.signal).finally(() => connection.close())
}

async function installMesh(): Promise<void> {
  const source = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/examples/mesh/sidecar.ts'), 'utf8')
  const program = transformSync(source, { loader: 'ts', format: 'esm', target: 'node20' }).code
  const named = (kind: string, name: string) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata: { name } })
  const rule = { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', 'get'] }
  await apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { mesh: 'on' } } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'outside' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name: 'mesh-sidecar' }, data: { 'sidecar.mjs': program } },
    { ...named('ClusterRole', 'mesh-workload'), rules: [rule] },
    {
      ...named('ClusterRoleBinding', 'mesh-workload'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'mesh-workload' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:serviceaccounts:shop' }],
    },
    {
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', metadata: { name: 'mesh' } },
      webhooks: [
        {
          ...{ name: 'inject.mesh.example.com', admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Fail' },
          clientConfig: hooks.client('/inject'),
          namespaceSelector: { matchLabels: { mesh: 'on' } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        },
      ],
    },
  ])
}

before(
  async () => {
    if (skip) return
    cluster = await LocalCluster.start('e2e-mesh', ['--nodes', '2'])
    const [image = ''] = await writeWebImage(cluster.dir, ['1.0'])
    const { code, stderr } = await cluster.skiff(['image', 'load', '--name', 'e2e-mesh', image])
    assert.equal(code, 0, stderr)
    await startMesh()
    await installMesh()
    await eventually(
      'the default service accounts',
      20_000,
      () => cluster.kubectl(['-n', 'outside', 'get', 'serviceaccount', 'default']),
      ({ code }) => code === 0,
    )
    await eventually(
      'the default service accounts',
      20_000,
      () => cluster.kubectl(['-n', 'shop', 'get', 'serviceaccount', 'default']),
      ({ code }) => code === 0,
    )
    await apply([...['shop', 'outside'].flatMap((namespace) => [serverPod(namespace), service(namespace), asking(namespace)])])
    for (const namespace of ['shop', 'outside']) for (const name of ['server', 'client']) await ready(namespace, name)
  },
  { timeout: 180_000 },
)
after(async () => {
  stop.abort(new Error('the test ends'))
  await signer.catch(() => undefined)
  await hooks?.close()
  await cluster?.delete()
  ssl.remove()
})

/** Every packet of the host, as text, while `use` runs. */
async function captured(use: () => Promise<unknown>): Promise<string> {
  const program = path.join(cluster.dir, 'capture')
  const source = `#include <sys/socket.h>
#include <arpa/inet.h>
#include <unistd.h>
int main(void) {
  char packet[65536];
  int all = socket(17, SOCK_RAW, htons(3)); /* AF_PACKET, ETH_P_ALL */
  if (all < 0 || write(1, "capturing\\n", 10) != 10) return 1;
  for (ssize_t size; (size = recv(all, packet, sizeof packet, 0)) > 0;) if (write(1, packet, size) != size) return 1;
  return 1;
}`
  if (!fs.existsSync(program)) execFileSync('cc', ['-x', 'c', '-o', program, '-'], { input: source })
  const child = spawn(program, { stdio: ['ignore', 'pipe', 'inherit'] })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child.stdout, 'data')
  try {
    await use()
  } finally {
    const ended = once(child, 'close')
    child.kill()
    await ended
  }
  return Buffer.concat(chunks).toString('latin1')
}

test('MSH-05 the webhook’s pods have the rules’ init container and the native sidecar, which reads its service account’s token', options, async () => {
  const { spec } = JSON.parse(await cluster.must(['-n', 'shop', 'get', 'pod', 'server', '-o', 'json']))
  const [rules, proxy] = spec.initContainers
  assert.deepEqual([rules.name, proxy.name, proxy.restartPolicy], ['mesh-rules', 'mesh-proxy', 'Always'])
  assert.ok(proxy.volumeMounts.some(({ mountPath }: { mountPath: string }) => mountPath === '/var/run/secrets/kubernetes.io/serviceaccount'))
  const columns = await cluster.must(['-n', 'shop', 'get', 'pod', 'server', '--no-headers'])
  assert.match(columns, /^server\s+2\/2\s+Running/)
})

test('MSH-02 MSH-05 a request between pods of the mesh is encrypted on the wire, one between other pods is not', options, async () => {
  const [meshed, plain] = [randomUUID(), randomUUID()]
  const packets = await captured(async () => {
    assert.equal((await ask('shop', 'server.shop', meshed)).stdout, `secret ${meshed}`)
    assert.equal((await ask('outside', 'server.outside', plain)).stdout, `secret ${plain}`)
  })
  assert.ok(packets.includes(plain), 'the capture has what is not encrypted')
  assert.ok(!packets.includes(meshed))
})

test('MSH-02 MSH-05 a client without a certificate of the mesh is refused in strict mode, whether it speaks TLS or not', options, async () => {
  const { code, stdout } = await ask('outside', 'server.shop', 'none', '/from-outside')
  assert.notEqual(code, 0)
  assert.equal(stdout, '')
  const hello = JSON.stringify('GET /from-outside HTTP/1.1\r\nhost: server\r\n\r\n')
  const connect = `require('tls').connect({ host: 'server.shop', port: 80, rejectUnauthorized: false }, () => socket.write(${hello}))`
  const overTls = `const socket = ${connect}; socket.on('error', () => {}).pipe(process.stdout)`
  assert.equal((await cluster.kubectl(['-n', 'outside', 'exec', 'client', '--', process.execPath, '-e', overTls])).stdout, '')
  const { podIP } = JSON.parse(await cluster.must(['-n', 'shop', 'get', 'pod', 'server', '-o', 'jsonpath={.status}']))
  for (const detour of ['/probe/8080/from-outside', '/probe/0/from-outside']) assert.notEqual((await ask('outside', `${podIP}:15020`, 'none', detour)).code, 0)
  assert.doesNotMatch(await logOf('server'), /from-outside/)
  const metrics = await cluster.must(['get', '--raw', '/api/v1/namespaces/shop/pods/server:15020/proxy/metrics'])
  assert.match(metrics, /^mesh_inbound_connections_total\{kind="refused"\} [1-9]/m)
  assert.match(metrics, /^mesh_peer_connections_total\{peer="spiffe:\/\/cluster.local\/ns\/shop\/sa\/default"\} [1-9]/m)
})

test('MSH-05 the name in a certificate is that of the service account that asks, whatever the request says', options, async () => {
  const requests = JSON.parse(await cluster.must(['get', 'csr', '-o', 'json'])) as { items: { spec: { username: string }; status: { certificate: string } }[] }
  assert.equal(requests.items.length, 2)
  for (const { spec, status } of requests.items) {
    assert.equal(spec.username, 'system:serviceaccount:shop:default')
    const text = execFileSync('openssl', ['x509', '-noout', '-ext', 'subjectAltName'], { input: Buffer.from(status.certificate, 'base64'), encoding: 'utf8' })
    assert.match(text, /URI:spiffe:\/\/cluster.local\/ns\/shop\/sa\/default/)
  }
})

test('MSH-03 MSH-05 the sidecar carries the first and the last request of the application', options, async () => {
  const say = (words: string) => `wget -q -T 5 -O /dev/null http://server.shop/${words}`
  await apply([pod('shop', 'talker', nodeNames[1], ['sh', '-c', `trap "${say('last-words')}; exit 0" TERM; ${say('first-words')}; sleep 100000 & wait`])])
  await ready('shop', 'talker')
  await eventually(
    'the first request',
    20_000,
    () => logOf('server'),
    (text) => text.includes('/first-words'),
  )
  await cluster.must(['-n', 'shop', 'delete', 'pod', 'talker', '--grace-period=20'])
  assert.match(await logOf('server'), /last-words/)
})

test('MSH-03 MSH-05 a Job in the mesh completes when its application does', options, async () => {
  const { spec } = pod('shop', 'once', nodeNames[1], ['sh', '-c', 'wget -q -T 5 -O /dev/null http://server.shop/job'])
  await apply([{ apiVersion: 'batch/v1', kind: 'Job', metadata: { namespace: 'shop', name: 'once' }, spec: { template: { spec } } }])
  await cluster.must(['-n', 'shop', 'wait', '--for=condition=Complete', 'job/once', '--timeout=60s'], 70_000)
  assert.match(await logOf('server'), /\/job/)
})
