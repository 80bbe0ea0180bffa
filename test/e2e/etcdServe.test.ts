/** ETC-03, ETC-19: `skiff etcd serve` with TLS, on its own file: etcdctl, an API server over it, a crash, and a second process on the same file. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:https'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { openSsl } from '../support/openssl.ts'
import { obstacleToApiServer, startApiServer } from './support/apiServerProcess.ts'
import { type EtcdFiles, endProcess, etcdCertificates, type ServedEtcd, serveEtcd } from './support/servedEtcd.ts'

const skip = obstacleToEtcd() || obstacleToApiServer
const program = path.resolve(import.meta.dirname, '../../bin/skiff')
const ssl = openSsl()
const running = new Set<ChildProcess>()
let flags: EtcdFiles['flags'] = []
let client: EtcdFiles['client']

before(() => {
  if (skip) return
  ;({ flags, client } = etcdCertificates(ssl))
})
after(async () => {
  await Promise.all([...running].map((one) => endProcess(one, 'SIGKILL')))
  ssl.remove()
})

async function startStore(): Promise<ServedEtcd> {
  const started = await serveEtcd(flags)
  running.add(started.child)
  return started
}

function etcdctl(port: number, ...args: string[]): string {
  const files = ['cacert=ca.crt', 'cert=client.crt', 'key=client.key'].map((one) => `--${one.replace('=', `=${ssl.folder}/`)}`)
  const env = { ...process.env, ETCDCTL_API: '3' }
  const { stdout, stderr, status } = spawnSync('etcdctl', [`--endpoints=127.0.0.1:${port}`, ...files, ...args], { encoding: 'utf8', env, timeout: 20_000 })
  assert.equal(status, 0, stderr)
  return stdout.trimEnd()
}

async function get(port: number, at: string, identity: object): Promise<string> {
  const asked = request({ host: '127.0.0.1', port, path: at, ca: client.ca, ...identity }).end()
  const [answer] = await once(asked, 'response')
  return text(answer)
}

test('ETC-19 clients with a certificate of the authority are served, others are not', { skip, timeout: 60_000 }, async () => {
  const { child, port } = await startStore()
  assert.equal(etcdctl(port, 'put', 'a', 'b'), 'OK')
  assert.equal(etcdctl(port, 'get', 'a', '--print-value-only'), 'b')
  assert.match(etcdctl(port, 'endpoint', 'health'), /^$/)
  assert.equal(await get(port, '/health', client), '{"health":"true","reason":""}')
  assert.match(await get(port, '/metrics', client), /\netcd_debugging_mvcc_current_revision 2\n/)
  await assert.rejects(get(port, '/health', {}))
  await endProcess(child, 'SIGTERM')
  assert.equal(child.exitCode, 0)
})

test('HA-03 an API server stores its objects through `skiff etcd serve`, and serves them again after a crash of both', { skip, timeout: 120_000 }, async () => {
  const store = await startStore()
  const files = [`--etcd-cafile=${ssl.folder}/ca.crt`, `--etcd-certfile=${ssl.folder}/client.crt`, `--etcd-keyfile=${ssl.folder}/client.key`]
  const users = ssl.authority('users')
  const jane = ssl.sign(users, { subject: '/O=system:masters/CN=jane' })
  ssl.file('jane.crt', jane.cert)
  ssl.file('jane.key', jane.key)
  const start = (port: number) =>
    startApiServer([
      `--data-dir=${ssl.folder}/api`,
      `--client-ca-file=${ssl.file('users.crt', users.cert)}`,
      `--etcd-servers=https://127.0.0.1:${port}`,
      ...files,
    ])
  const kubectl = (port: number, ...args: string[]) => {
    const identity = [`--client-certificate=${ssl.folder}/jane.crt`, `--client-key=${ssl.folder}/jane.key`]
    const where = ['--kubeconfig=/dev/null', `--server=https://127.0.0.1:${port}`, '--insecure-skip-tls-verify']
    const { stdout, stderr, status } = spawnSync('kubectl', [...where, ...identity, ...args], { encoding: 'utf8', env: { ...process.env, HOME: ssl.folder } })
    assert.equal(status, 0, stderr)
    return stdout
  }
  const before_ = await start(store.port)
  kubectl(before_.port, 'create', 'namespace', 'shop')
  kubectl(before_.port, '-n', 'shop', 'create', 'configmap', 'kept', '--from-literal=a=b')
  await before_.end('SIGKILL')
  await endProcess(store.child, 'SIGKILL')
  const again = await startStore()
  assert.match(etcdctl(again.port, 'get', '/registry/configmaps/shop/kept', '--keys-only'), /kept/)
  const after_ = await start(again.port)
  assert.equal(kubectl(after_.port, '-n', 'shop', 'get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}'), 'b')
  await after_.end('SIGTERM')
  await endProcess(again.child, 'SIGTERM')
})

test('ETC-24 users are needed again after a crash, the name in the certificate is one, and a password counts before it', {
  skip,
  timeout: 60_000,
}, async () => {
  const store = await startStore()
  for (const args of [
    'user add client --no-password',
    'user add root:secret',
    'user grant-role root root',
    'role add r',
    'role grant-permission r readwrite k',
  ])
    etcdctl(store.port, ...args.split(' '))
  etcdctl(store.port, 'user', 'grant-role', 'client', 'r')
  etcdctl(store.port, 'auth', 'enable')
  await endProcess(store.child, 'SIGKILL')
  const again = await startStore()
  assert.equal(etcdctl(again.port, 'put', 'k', '1'), 'OK')
  assert.throws(() => etcdctl(again.port, 'put', 'other', '1'), /permission denied/)
  assert.equal(etcdctl(again.port, '--user', 'root:secret', 'put', 'other', '1'), 'OK')
  etcdctl(again.port, '--user', 'root:secret', 'auth', 'disable')
  await endProcess(again.child, 'SIGTERM')
})

test('a second process on the same file waits, then says which process has it', { skip, timeout: 60_000 }, async () => {
  const { child } = await startStore()
  await assert.rejects(startStore(), new RegExp(`another process \\(pid ${child.pid}\\) has the store .*data\\.mdb open`))
  await endProcess(child, 'SIGTERM')
})

test('a process that waits for the file ends at once after SIGTERM, and names the process that has it', { skip, timeout: 60_000 }, async () => {
  const { child } = await startStore()
  const waiting = spawn(process.execPath, [program, 'etcd', 'serve', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  running.add(waiting)
  let output = ''
  for await (const piece of waiting.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += piece
    if (output.includes('Another process has the store open')) break
  }
  waiting.stderr.on('data', (text: string) => {
    output += text
  })
  const ended = once(waiting, 'close')
  const startMs = performance.now()
  waiting.kill('SIGTERM')
  assert.deepEqual(await ended, [1, null])
  assert.ok(performance.now() - startMs < 5_000, 'it did not wait for the file to the end')
  assert.match(output, new RegExp(`stopped by SIGTERM while waiting: another process \\(pid ${child.pid}\\) has the store .*data\\.mdb open`))
  await endProcess(child, 'SIGTERM')
})

test('ETC-18 flags that cannot be used are refused together', { skip }, () => {
  const { stderr, status } = spawnSync(
    process.execPath,
    [
      program,
      'etcd',
      'serve',
      '--listen-client-urls=https://example.com:1',
      '--auto-compaction-mode=never',
      '--auth-token=jwt,sign-method=RS256',
      '--bcrypt-cost=3',
      '--grpc-keepalive-interval=-1s',
    ],
    {
      encoding: 'utf8',
    },
  )
  assert.equal(status, 2)
  assert.match(stderr, /"example\.com" must be an IP address or localhost/)
  assert.match(stderr, /--auth-token: tokens of the type jwt are not supported, use simple/)
  assert.match(stderr, /--bcrypt-cost must be from 4 to 31/)
  assert.match(stderr, /--grpc-keepalive-interval must not be negative/)
  assert.match(stderr, /--auto-compaction-mode must be periodic or revision, not "never"/)
})
