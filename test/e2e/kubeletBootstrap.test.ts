/**
 * `skiff kubelet`, `skiff apiserver` and `skiff controller-manager` as separate processes: the kubelet joins with a bootstrap token, gets certificates
 * from the cluster, honours its configuration file with drop-ins and flags, and runs a pod on a containerd of its own.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { certificateSigningRequests, clusterRoleBindings, nodes, pods, secrets, serviceAccounts } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import { createKubeletHost } from '#kubelet/core/host'
import { freePort } from '#main/localCluster/freePort'
import { realClock } from '#testing/realClock'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'
import { eventually, skiffBin } from './support/localCluster.ts'

const isBuilt = fs.existsSync(path.resolve(import.meta.dirname, '../../dist/skiff.mjs'))
const skip = (isBuilt ? await missingPrerequisite() : 'needs a build: make build') ?? false
const withinMs = 60_000
const nodeName = 'joined-1'

let dir = ''
let ports: { api: number; kubelet: number; health: number }
let containerd: TestContainerd
let transport: HttpTransport
let client: Client
let kubelet: ChildProcess
const children: ChildProcess[] = []
const said = new Map<ChildProcess, string>()
const at = (name: string) => path.join(dir, name)
const pki = (name: string) => at(`data/pki/${name}`)

function start(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [skiffBin, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  children.push(child)
  child.stderr?.on('data', (chunk) => said.set(child, (said.get(child) ?? '') + chunk))
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

const server = () => `https://127.0.0.1:${ports.api}`

function writeKubeconfig(name: string, user: object): string {
  const cluster = { server: server(), 'certificate-authority': pki('ca.crt') }
  const config = {
    'current-context': 'x',
    clusters: [{ name: 'x', cluster }],
    users: [{ name: 'x', user }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
  }
  fs.writeFileSync(at(name), JSON.stringify(config), { mode: 0o600 })
  return at(name)
}

/** As kubeadm init leaves it: a token, and who may ask for and gets a certificate. */
async function allowBootstrap(): Promise<void> {
  const token = { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef', 'usage-bootstrap-authentication': 'true' }
  const data = Object.fromEntries(Object.entries(token).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  await client.of(secrets).create({ metadata: { namespace: 'kube-system', name: 'bootstrap-token-abcdef' }, type: 'bootstrap.kubernetes.io/token', data })
  const bind = (name: string, role: string, group: string) =>
    client.of(clusterRoleBindings).create({
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
    })
  await bind('ask', 'system:node-bootstrapper', 'system:bootstrappers')
  await bind('approve', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient', 'system:bootstrappers')
}

const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'

function kubeletArgs(): string[] {
  fs.mkdirSync(at('conf.d'))
  const file = [
    `port: ${ports.kubelet}`,
    `healthzPort: ${ports.health}`,
    'address: 127.0.0.1',
    `containerRuntimeEndpoint: unix://${containerd.socket}`,
    `cgroupRoot: ${containerd.cgroupRoot}`,
    'makeIPTablesUtilChains: false',
    `podLogsDir: ${containerd.directory}/logs`,
    `imageServiceEndpoint: unix://${containerd.socket}`,
    'tlsMinVersion: VersionTLS12',
    'tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]',
    'serverTLSBootstrap: true',
    'rotateCertificates: true',
    'maxPods: 50',
    'evictionHard: {memory.available: 1Mi}',
    `authentication: {x509: {clientCAFile: ${pki('ca.crt')}}}`,
  ]
  fs.writeFileSync(at('kubelet.yaml'), `${head}${file.join('\n')}\n`)
  fs.writeFileSync(at('conf.d/10.conf'), `${head}maxPods: 60\nsyncFrequency: 90s\n`)
  fs.writeFileSync(at('conf.d/20.conf'), `${head}maxPods: 70\n`)
  fs.writeFileSync(at('conf.d/30.other'), 'nonsense')
  const bootstrap = writeKubeconfig('bootstrap.conf', { token: 'abcdef.0123456789abcdef' })
  return [
    'kubelet',
    `--config=${at('kubelet.yaml')}`,
    `--config-dir=${at('conf.d')}`,
    `--kubeconfig=${at('kubelet.conf')}`,
    `--bootstrap-kubeconfig=${bootstrap}`,
    `--cert-dir=${at('kubelet-pki')}`,
    `--root-dir=${containerd.directory}/kubelet`,
    `--hostname-override=${nodeName}`,
    '--node-ip=127.0.0.1',
    '--node-labels=zone=a,node.kubernetes.io/kind=b',
    '--register-with-taints=only=me:NoSchedule',
    '--image-gc-high-threshold=99',
  ]
}

before(async () => {
  if (skip) return
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-bootstrap-'))
  containerd = await startContainerd()
  const api = start(['apiserver', `--data-dir=${at('data')}`, '--secure-port=0', '--enable-bootstrap-token-auth'])
  const serving = () => /Serving securely.*127\.0\.0\.1:(\d+)/.exec(said.get(api) ?? '')?.[1]
  const port = await eventually(
    'the API server serves',
    withinMs,
    async () => serving(),
    (found) => found !== undefined,
  )
  ports = { api: Number(port), kubelet: await freePort(), health: await freePort() }
  const tls = { ca: fs.readFileSync(pki('ca.crt')), cert: fs.readFileSync(pki('admin.crt')), key: fs.readFileSync(pki('admin.key')) }
  transport = createHttpTransport({ server: server(), clock: realClock, tls })
  client = createClient(transport)
  await allowBootstrap()
  const admin = writeKubeconfig('admin.conf', { 'client-certificate': pki('admin.crt'), 'client-key': pki('admin.key') })
  const signing = [`--cluster-signing-cert-file=${pki('ca.crt')}`, `--cluster-signing-key-file=${pki('ca.key')}`]
  const names = 'certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller,serviceaccount-controller'
  start(['controller-manager', `--kubeconfig=${admin}`, '--secure-port=0', '--leader-elect=false', `--controllers=${names}`, ...signing])
  kubelet = start(kubeletArgs())
})

after(async () => {
  if (skip) return
  for (const child of children.reverse()) await end(child)
  await transport?.close()
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
  fs.rmSync(dir, { recursive: true, force: true })
})

function ask(pathname: string, options: https.RequestOptions = {}): Promise<{ status: number | undefined; body: string; issuer: string }> {
  return new Promise((resolve, reject) => {
    const identity = { cert: fs.readFileSync(pki('admin.crt')), key: fs.readFileSync(pki('admin.key')) }
    const request = https.get(`https://127.0.0.1:${ports.kubelet}${pathname}`, { agent: false, ...identity, ...options }, (response) => {
      const { issuer } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate()
      text(response).then((body) => resolve({ status: response.statusCode, body, issuer: String(issuer?.CN) }), reject)
    })
    request.on('error', reject)
  })
}

const log = () => said.get(kubelet) ?? ''

test('KUB-23 a kubelet joins with a bootstrap token, and keeps the certificate that it was given', { skip, timeout: 120_000 }, async () => {
  const node = await eventually(
    `the node is registered: ${log()}`,
    withinMs,
    () =>
      client
        .of(nodes)
        .get({ name: nodeName })
        .catch(() => undefined),
    (found) => found !== undefined,
  )
  assert.equal(node?.metadata.labels?.zone, 'a')
  assert.deepEqual(
    node?.spec?.taints?.map(({ key, value, effect }) => `${key}=${value}:${effect}`).filter((taint) => taint.startsWith('only')),
    ['only=me:NoSchedule'],
  )
  const current = at('kubelet-pki/kubelet-client-current.pem')
  const { subject, issuer } = new X509Certificate(fs.readFileSync(current))
  assert.equal(subject, `O=system:nodes\nCN=system:node:${nodeName}`)
  assert.equal(issuer, new X509Certificate(fs.readFileSync(pki('ca.crt'))).subject)
  assert.equal(fs.statSync(current).mode & 0o777, 0o600)
  assert.equal(fs.statSync(at('kubelet.conf')).mode & 0o777, 0o600)
  assert.match(fs.readFileSync(at('kubelet.conf'), 'utf8'), /client-certificate: .*kubelet-client-current\.pem/)
})

test('KUB-23 with serverTLSBootstrap the port has a self-signed certificate until the cluster’s is approved', { skip, timeout: 120_000 }, async () => {
  const open = await eventually(
    'the port is open',
    withinMs,
    () => ask('/healthz', { rejectUnauthorized: false }).catch(() => undefined),
    (found) => found !== undefined,
  )
  assert.match(open?.issuer ?? '', /^kubelet-ca@/)
  const requests = client.of(certificateSigningRequests)
  const waiting = await eventually(
    'a serving certificate is asked for',
    withinMs,
    async () => (await requests.list()).items.find(({ spec }) => spec.signerName === 'kubernetes.io/kubelet-serving'),
    (found) => found !== undefined,
  )
  assert.equal(waiting?.spec.username, `system:node:${nodeName}`)
  assert.equal(waiting?.status?.conditions, undefined, 'nobody approves these but people')
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }]
  await requests.updateSubresource({ name: waiting?.metadata.name ?? '' }, 'approval', { ...waiting, status: { conditions } })
  const ca = fs.readFileSync(pki('ca.crt'))
  const trusted = await eventually(
    'the port shows the cluster’s',
    withinMs,
    () => ask('/healthz', { ca }).catch(() => undefined),
    (found) => found !== undefined,
  )
  assert.deepEqual([trusted?.status, trusted?.body], [200, 'ok'])
})

test('KUB-24 file, drop-ins and flags together are what /configz shows', { skip, timeout: 60_000 }, async () => {
  const { kubeletconfig } = JSON.parse((await ask('/configz', { rejectUnauthorized: false })).body) as { kubeletconfig: Record<string, unknown> }
  assert.deepEqual(
    [kubeletconfig.maxPods, kubeletconfig.syncFrequency, kubeletconfig.imageGCHighThresholdPercent, kubeletconfig.evictionHard, kubeletconfig.healthzPort],
    [70, '1m30s', 99, { 'memory.available': '1Mi' }, ports.health],
  )
  const node = await eventually(
    'the node states its capacity',
    withinMs,
    () => client.of(nodes).get({ name: nodeName }),
    ({ status }) => status?.capacity?.pods !== undefined,
  )
  assert.equal(node.status?.capacity?.pods, '70')
  assert.match((await ask('/flagz', { rejectUnauthorized: false })).body, /hostname-override=joined-1/)
  assert.match((await ask('/statusz', { rejectUnauthorized: false })).body, /kubelet/)
  assert.match(log(), /Flag --image-gc-high-threshold has been deprecated/)
  const health = await new Promise<string>((resolve, reject) => {
    http.get(`http://127.0.0.1:${ports.health}/healthz`, (response) => text(response).then(resolve, reject)).on('error', reject)
  })
  assert.equal(health, 'ok')
})

test('KUB-24 the kubelet alone runs a pod', { skip, timeout: 120_000 }, async () => {
  await eventually(
    'the namespace has its account',
    withinMs,
    () =>
      client
        .of(serviceAccounts)
        .get({ namespace: 'default', name: 'default' })
        .catch(() => undefined),
    (found) => found !== undefined,
  )
  await client.of(pods).create({
    metadata: { namespace: 'default', name: 'one' },
    spec: {
      nodeName,
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: busybox, imagePullPolicy: 'Never', command: ['sh', '-c', 'echo from the node'] }],
    },
  })
  await eventually(
    'the pod has ended',
    withinMs,
    () => client.of(pods).get({ namespace: 'default', name: 'one' }),
    ({ status }) => status?.phase === 'Succeeded',
  )
  assert.equal((await ask('/containerLogs/default/one/main', { rejectUnauthorized: false })).body, 'from the node\n')
})
