/** The ports that components have by default: each alone, in one network namespace of their own. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { eventually, skiffBin } from './support/localCluster.ts'

const hasBuild = fs.existsSync(path.resolve(import.meta.dirname, '../../dist/skiff.mjs'))
const skip = !hasBuild ? 'needs a build: make build' : process.getuid?.() === 0 ? false : 'needs root: a network namespace of its own'
const options = { skip, timeout: 300_000 }
const withinMs = 120_000
const namespace = `skiff-ports-${process.pid}`
const run = promisify(execFile)
const children: ChildProcess[] = []
let dir = ''
const at = (name: string) => path.join(dir, name)
const logs = new Map<string, string>()

function start(name: string, args: readonly string[]): void {
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, skiffBin, ...args], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] })
  children.push(child)
  child.stderr?.on('data', (chunk) => logs.set(name, `${logs.get(name) ?? ''}${chunk}`))
}

interface Asked {
  readonly status: number
  readonly body: string
}

/** Asks in the namespace, whatever the certificate. */
async function ask(url: string): Promise<Asked> {
  const program = `fetch(${JSON.stringify(url)}).then(async (a) => console.log(JSON.stringify({ status: a.status, body: await a.text() })), (e) => console.log(JSON.stringify({ status: 0, body: String(e.cause ?? e) })))`
  const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }
  const { stdout } = await run('ip', ['netns', 'exec', namespace, process.execPath, '-e', program], { env })
  return JSON.parse(stdout) as Asked
}

async function untilAnswered(url: string, status = 200): Promise<Asked> {
  try {
    return await eventually(
      `${url} answers ${status}`,
      withinMs,
      () => ask(url),
      (answer) => answer.status === status,
    )
  } catch (error) {
    throw new Error([...logs].map(([name, text]) => `${name}: ${text.slice(-500)}`).join('\n'), { cause: error })
  }
}

function kubeconfig(user: string): string {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  const ca = ['-CA', 'data/pki/ca.crt', '-CAkey', 'data/pki/ca.key', '-CAcreateserial']
  openssl('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${user}.key`, '-out', `${user}.csr`, '-subj', `/CN=system:${user}`)
  openssl('x509', '-req', '-in', `${user}.csr`, ...ca, '-days', '2', '-out', `${user}.crt`)
  return writeConfig(user, `${user}.crt`, `${user}.key`)
}

function writeConfig(name: string, cert: string, key: string): string {
  const config = {
    'current-context': 'x',
    clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority': 'data/pki/ca.crt' } }],
    users: [{ name: 'x', user: { 'client-certificate': cert, 'client-key': key } }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
  }
  fs.writeFileSync(at(`${name}.conf`), JSON.stringify(config))
  return at(`${name}.conf`)
}

/** A call of the API as its administrator, in the namespace. */
async function api(method: string, where: string, body: object): Promise<void> {
  const program = `
    const https = require('node:https'), fs = require('node:fs')
    const pki = (name) => fs.readFileSync('data/pki/' + name)
    const [method, path, type, body] = process.argv.slice(1)
    const call = https.request({ host: '127.0.0.1', port: 6443, path, method, ca: pki('ca.crt'), cert: pki('admin.crt'), key: pki('admin.key'), headers: { 'content-type': type } })
    call.on('response', (answer) => { answer.resume(); answer.on('end', () => process.exit(answer.statusCode < 300 ? 0 : 1)) })
    call.end(body)`
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  await run('ip', ['netns', 'exec', namespace, process.execPath, '-e', program, method, where, type, JSON.stringify(body)], { cwd: dir })
}

before(async () => {
  if (skip) return
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-ports-'))
  execFileSync('ip', ['netns', 'add', namespace])
  execFileSync('ip', ['-n', namespace, 'link', 'set', 'lo', 'up'])
  start('etcd', ['etcd', 'serve'])
  start('apiserver', ['apiserver', `--data-dir=${at('data')}`])
  await untilAnswered('https://127.0.0.1:6443/livez')
  const access = (config: string) => ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map((flag) => `--${flag}=${config}`)
  start('controller-manager', ['controller-manager', ...access(kubeconfig('kube-controller-manager'))])
  start('scheduler', ['scheduler', ...access(kubeconfig('kube-scheduler'))])
  // The limit of connections belongs to the whole host.
  const proxy = ['--hostname-override=n1', '--cluster-cidr=10.244.0.0/16', '--conntrack-max-per-core=0']
  start('kube-proxy', ['kube-proxy', `--kubeconfig=${kubeconfig('kube-proxy')}`, ...proxy])
})

after(async () => {
  if (skip) return
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  execFileSync('ip', ['netns', 'del', namespace])
  fs.rmSync(dir, { recursive: true })
})

test('ARC-06 components without flags of ports answer on upstream’s default ports', options, async () => {
  await untilAnswered('https://127.0.0.1:6443/livez')
  await untilAnswered('http://127.0.0.1:2379/health')
  await untilAnswered('https://127.0.0.1:10257/healthz')
  await untilAnswered('https://127.0.0.1:10259/healthz')
  await untilAnswered('http://127.0.0.1:10256/livez')
  assert.equal((await untilAnswered('http://127.0.0.1:10249/healthz')).body, 'ok')
  assert.equal((await untilAnswered('http://127.0.0.1:10249/proxyMode')).body, 'iptables')
})

test('ARC-06 kube-proxy alone is unhealthy without its node and while the node is to be deleted, and its metrics follow the rules', options, async () => {
  const health = 'http://127.0.0.1:10256/healthz'
  await untilAnswered(health, 503)
  await api('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } })
  const { body } = await untilAnswered(health)
  assert.deepEqual(Object.keys(JSON.parse(body) as object), ['lastUpdated', 'currentTime', 'nodeEligible', 'healthy', 'status'])
  const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }]
  await api('PATCH', '/api/v1/nodes/n1', { spec: { taints } })
  assert.equal((JSON.parse((await untilAnswered(health, 503)).body) as { nodeEligible: boolean }).nodeEligible, false)
  assert.equal((await ask('http://127.0.0.1:10256/livez')).status, 200)
  await api('PATCH', '/api/v1/nodes/n1', { spec: { taints: null } })
  await untilAnswered(health)
  const spec = { clusterIP: '10.96.0.77', ports: [{ port: 80 }] }
  await api('POST', '/api/v1/namespaces/default/services', { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec })
  const rules = async () => (await run('ip', ['netns', 'exec', namespace, 'iptables-save'])).stdout
  await eventually('rules of the Service', withinMs, rules, (text) => text.includes('10.96.0.77/32'))
  const metrics = await eventually(
    'metrics',
    withinMs,
    async () => (await ask('http://127.0.0.1:10249/metrics')).body,
    (text) => /kubeproxy_sync_proxy_rules_service_changes_total [1-9]/.test(text),
  )
  for (const expected of [
    /^kubeproxy_sync_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} [1-9]/m,
    /^kubeproxy_sync_full_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} [1-9]/m,
    /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} \d/m,
    /^kubeproxy_sync_proxy_rules_iptables_total\{ip_family="IPv4",table="nat"\} [1-9]/m,
    /^kubeproxy_proxy_healthz_total\{code="503"\} [1-9]/m,
    /^rest_client_requests_total\{code="200",method="GET",host="[^"]+"\} [1-9]/m,
  ])
    assert.match(metrics, expected)
})

test('ARC-06 skiff kube-proxy --cleanup removes the rules that kube-proxy made', options, async () => {
  const child = children.pop()
  child?.kill('SIGTERM')
  if (child) await once(child, 'exit')
  assert.match((await run('ip', ['netns', 'exec', namespace, 'iptables-save'])).stdout, /KUBE-SERVICES/)
  await run('ip', ['netns', 'exec', namespace, process.execPath, skiffBin, 'kube-proxy', '--cleanup'])
  // KUBE-FIREWALL stays, as a kubelet may have it, too.
  assert.doesNotMatch((await run('ip', ['netns', 'exec', namespace, 'iptables-save'])).stdout, /KUBE-(SERVICES|NODEPORTS|SVC)/)
})
