/** Each component as a separate process over TLS: one of two is active; when it is killed or stalls too long, only the other is. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { deployments, leases, nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import { freePort } from '#main/localCluster/freePort'
import { realClock } from '#testing/realClock'
import { eventually, skiffBin } from './support/localCluster.ts'

const skip = fs.existsSync(path.resolve(import.meta.dirname, '../../dist/skiff.mjs')) ? false : 'needs a build: make build'
const withinMs = 60_000
const namespace = 'default'
const writes = ['create', 'update', 'patch', 'delete', 'deletecollection']
type Part = 'scheduler' | 'controller-manager'

let dir = ''
let apiPort = 0
let transport: HttpTransport
let client: Client
const children: ChildProcess[] = []
const running: Record<Part, Started[]> = { scheduler: [], 'controller-manager': [] }
const at = (name: string) => path.join(dir, name)
const pki = (name: string) => at(`data/pki/${name}`)

/** A process of ours, and what it said. */
class Started {
  readonly child: ChildProcess
  /** Its port; 0: none. */
  port = 0
  log = ''

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [skiffBin, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    children.push(this.child)
    this.child.stderr?.on('data', (chunk) => {
      this.log += chunk
    })
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Undefined: it ended instead. */
  async says(what: RegExp): Promise<RegExpExecArray | undefined> {
    const look = async () => ({ found: what.exec(this.log) ?? undefined, hasEnded: this.hasEnded, log: this.log })
    return (await eventually(`a line like ${what}`, withinMs, look, ({ found, hasEnded }) => found !== undefined || hasEnded)).found
  }

  get leads(): boolean {
    return this.log.includes('Successfully acquired lease')
  }

  async ended(): Promise<number | null> {
    if (!this.hasEnded) await once(this.child, 'exit')
    return this.child.exitCode
  }
}

/** `replica` is a group of whose certificate it shows, so that the audit log tells the two apart. */
function kubeconfigFor(part: Part, replica: number): string {
  const name = `${part}-${replica}`
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  const subject = `/O=replica-${replica}/CN=system:kube-${part}`
  openssl('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
  openssl('x509', '-req', '-in', `${name}.csr`, '-CA', pki('ca.crt'), '-CAkey', pki('ca.key'), '-CAcreateserial', '-days', '2', '-out', `${name}.crt`)
  const config = {
    'current-context': 'x',
    clusters: [{ name: 'x', cluster: { server: `https://127.0.0.1:${apiPort}`, 'certificate-authority': 'data/pki/ca.crt' } }],
    users: [{ name: 'x', user: { 'client-certificate': `${name}.crt`, 'client-key': `${name}.key` } }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
  }
  fs.writeFileSync(at(`${name}.conf`), JSON.stringify(config))
  return at(`${name}.conf`)
}

/** As kubeadm starts them; the leases are a little shorter. */
function argsOf(part: Part, replica: number, port: number): string[] {
  const kubeconfig = kubeconfigFor(part, replica)
  const access = ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map((flag) => `--${flag}=${kubeconfig}`)
  const lease = ['--leader-elect=true', '--leader-elect-lease-duration=12s', '--leader-elect-renew-deadline=10s', '--leader-elect-retry-period=1s']
  const common = [part, ...access, ...lease, '--bind-address=127.0.0.1', `--secure-port=${port}`]
  if (part === 'scheduler') return [...common, '--tls-min-version=VersionTLS13', '--disabled-metrics=process_open_fds']
  return [
    ...common,
    '--controllers=*,bootstrapsigner,tokencleaner',
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    '--cluster-name=kubernetes',
    '--allocate-node-cidrs=true',
    '--cluster-cidr=10.244.0.0/16',
    '--service-cluster-ip-range=10.96.0.0/16',
    // The node of this test has no kubelet that reports a status.
    '--node-monitor-grace-period=1h',
    '--node-startup-grace-period=1h',
  ]
}

/** A port that is free may be taken a moment later: then another. */
async function startPart(part: Part, replica: number): Promise<Started> {
  for (;;) {
    const port = await freePort()
    const started = new Started(argsOf(part, replica, port))
    started.port = port
    if (await started.says(/Serving securely/)) return started
    assert.match(started.log, /EADDRINUSE/)
  }
}

/** Makes a deployment of one pod, and waits until the pod has a node: that takes controllers and the scheduler. */
async function work(name: string): Promise<void> {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  await client.of(deployments).create({ metadata: { namespace, name }, spec: { replicas: 1, selector: { matchLabels: labels }, template } })
  const bound = async () => (await client.of(pods).list({ namespace, labelSelector: `app=${name}` })).items.map(({ spec }) => spec?.nodeName)
  await eventually(`the pod of ${name} has a node`, withinMs, bound, (found) => found.length === 1 && found[0] === 'n1')
}

const leader = (part: Part) =>
  eventually(
    `a ${part} leads`,
    withinMs,
    async () => running[part].find((one) => one.leads && !one.hasEnded),
    (found) => found !== undefined,
  ) as Promise<Started>
const standby = async (part: Part) => {
  const leading = await leader(part)
  return running[part].find((one) => one !== leading) as Started
}

/** The status of an answer from a component's own port. */
function ask({ port }: Started, url: string, user?: string): Promise<{ status: number; body: string }> {
  const identity = user ? { cert: fs.readFileSync(`${user}.crt`), key: fs.readFileSync(`${user}.key`) } : {}
  return new Promise((resolve, reject) => {
    const request = https.get({ host: '127.0.0.1', port, path: url, rejectUnauthorized: false, agent: false, ...identity }, (answer) => {
      let body = ''
      answer.on('data', (chunk) => {
        body += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
    })
    request.on('error', reject)
  })
}

before(async () => {
  if (skip) return
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-components-'))
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules: [{ level: 'Metadata', verbs: writes }] }
  fs.writeFileSync(at('policy.json'), JSON.stringify(policy))
  const audit = [`--audit-policy-file=${at('policy.json')}`, `--audit-log-path=${at('audit.log')}`]
  const api = new Started(['apiserver', `--data-dir=${at('data')}`, '--secure-port=0', ...audit])
  apiPort = Number((await api.says(/Serving securely.*127\.0\.0\.1:(\d+)/))?.[1])
  const identity = { ca: fs.readFileSync(pki('ca.crt')), cert: fs.readFileSync(pki('admin.crt')), key: fs.readFileSync(pki('admin.key')) }
  transport = createHttpTransport({ server: `https://127.0.0.1:${apiPort}`, clock: realClock, tls: identity })
  client = createClient(transport)
  for (const part of ['scheduler', 'controller-manager'] as const) running[part] = await Promise.all([1, 2].map((replica) => startPart(part, replica)))
  const capacity = { cpu: '4', memory: '8Gi', pods: '110' }
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }]
  const node = await client.of(nodes).create({ metadata: { name: 'n1' }, spec: {} })
  await client.of(nodes).updateStatus({ ...node, status: { capacity, allocatable: capacity, conditions } })
})
after(async () => {
  if (skip) return
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await transport?.close()
  fs.rmSync(dir, { recursive: true })
})

test('HA-04 of two processes of each component one leads, and together they work', { skip }, async () => {
  await work('first')
  for (const part of ['scheduler', 'controller-manager'] as const) {
    assert.equal(running[part].filter(({ leads }) => leads).length, 1, part)
    const { spec } = await client.of(leases).get({ namespace: 'kube-system', name: `kube-${part}` })
    assert.ok((await leader(part)).log.includes(`identity="${spec?.holderIdentity}"`))
    assert.equal(spec?.leaseDurationSeconds, 12)
  }
})

test('HA-04 a component’s own port serves health without credentials, and other paths with authorization', { skip }, async () => {
  for (const part of ['scheduler', 'controller-manager'] as const) {
    for (const one of running[part]) {
      for (const url of ['/healthz', '/livez', '/readyz']) assert.deepEqual(await ask(one, url), { status: 200, body: 'ok' }, `${part} ${url}`)
      assert.equal((await ask(one, '/metrics')).status, 403)
      assert.match((await ask(one, '/flagz', pki('admin'))).body, /\nleader-elect-lease-duration=12s\n/)
      assert.match((await ask(one, '/metrics', pki('admin'))).body, /\nkubernetes_feature_enabled\{name="WatchList",stage="BETA"\} 1\n/)
      const leading = one === (await leader(part)) ? 1 : 0
      assert.match((await ask(one, '/metrics', pki('admin'))).body, new RegExp(`\nleader_election_master_status\\{name="kube-${part}"\\} ${leading}\n`))
      // Known, but without the right.
      assert.match((await ask(one, '/metrics', at('scheduler-1'))).body, /User \\"system:kube-scheduler\\" cannot get path/)
      assert.match((await ask(one, '/configz', pki('admin'))).body, /"LeaseDuration":"12s"/)
    }
  }
})

test("HA-04 flags configure the port's TLS and filter its metrics", { skip }, async () => {
  const metricsOf = async (part: Part) => (await ask(await leader(part), '/metrics', pki('admin'))).body
  assert.doesNotMatch(await metricsOf('scheduler'), /process_open_fds/)
  assert.match(await metricsOf('controller-manager'), /\nprocess_open_fds \d+\n/)
  const hello = async (part: Part) => {
    const socket = tls.connect({ host: '127.0.0.1', port: (await leader(part)).port, maxVersion: 'TLSv1.2', rejectUnauthorized: false })
    await once(socket, 'secureConnect').finally(() => socket.destroy())
  }
  await hello('controller-manager')
  await assert.rejects(hello('scheduler'), /protocol version/)
})

test('HA-04 a leader that is killed, and one that sleeps too long, are followed by the others; the sleeper ends and writes nothing any more', {
  skip,
}, async () => {
  const [killed, asleep] = [await leader('controller-manager'), await leader('scheduler')]
  const [next, woken] = [await standby('controller-manager'), await standby('scheduler')]
  killed.child.kill('SIGKILL')
  asleep.child.kill('SIGSTOP')
  await Promise.all([next, woken].map((one) => eventually('the other leads', withinMs, async () => one.leads, Boolean)))
  await work('second')
  asleep.child.kill('SIGCONT')
  assert.equal(await asleep.ended(), 1)
  assert.match(asleep.log, /leaderelection lost/)
  await work('third')
  const schedulers = auditedWriters()
  const changes = schedulers.filter((replica, index) => index > 0 && schedulers[index - 1] !== replica)
  assert.equal(changes.length, 1, `writers of bindings and pods: ${schedulers}`)
})

/** The certificates of schedulers' writes, in order. Leases are left out: schedulers that do not lead write them, too. */
function auditedWriters(): string[] {
  const lines = fs.readFileSync(at('audit.log'), 'utf8').split('\n').filter(Boolean)
  return lines.flatMap((line) => {
    const { user, objectRef } = JSON.parse(line) as { user: { username: string; groups: string[] }; objectRef?: { resource: string } }
    if (user.username !== 'system:kube-scheduler' || ['leases', 'subjectaccessreviews', 'tokenreviews'].includes(objectRef?.resource ?? '')) return []
    return user.groups.filter((group) => group.startsWith('replica-'))
  })
}

test('HA-04 a stopped leader releases its lease and exits with 0', { skip }, async () => {
  const leading = await leader('scheduler')
  leading.child.kill('SIGTERM')
  assert.equal(await leading.ended(), 0, leading.log)
  const { spec } = await client.of(leases).get({ namespace: 'kube-system', name: 'kube-scheduler' })
  assert.equal(spec?.holderIdentity ?? '', '')
})

test('HA-04 flags that cannot be used end it with 2', { skip }, () => {
  const { status, stderr } = spawnSync(process.execPath, [skiffBin, 'controller-manager', '--nope', '--controllers=x'], { encoding: 'utf8' })
  assert.deepEqual([status, stderr], [2, 'error: unknown flag: --nope\nhint: skiff controller-manager --help lists the flags\n'])
  const help = spawnSync(process.execPath, [skiffBin, 'scheduler', '--help'], { encoding: 'utf8' })
  assert.equal(help.status, 0)
  assert.match(help.stdout, /\nLeader election flags:\n\n.*--leader-elect-lease-duration duration\n.*\(default 15s\)\n/s)
})
