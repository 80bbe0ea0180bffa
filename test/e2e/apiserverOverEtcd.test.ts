/** ETC-19: `skiff apiserver` on a real etcd that asks for certificates; etcdctl shows what it wrote, and two servers share it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { after, before, test } from 'node:test'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../support/etcdServer.ts'
import { openSsl } from '../support/openssl.ts'
import { type ApiServerProcess, obstacleToApiServer, startApiServer } from './support/apiServerProcess.ts'

const skip = obstacleToEtcd() || obstacleToApiServer
const ssl = openSsl()
let etcd: EtcdServer
let servers: ApiServerProcess[] = []
let etcdFlags: string[] = []

const file = (name: string, text: string) => ssl.file(name, text)

before(async () => {
  if (skip) return
  const authority = ssl.authority('etcd-ca')
  const serving = ssl.sign(authority, { subject: '/CN=etcd', usage: 'serverAuth', names: 'IP:127.0.0.1' })
  const client = ssl.sign(authority, { subject: '/CN=apiserver' })
  const ca = file('etcd-ca.crt', authority.cert)
  etcd = await startEtcd({
    tls: { ca, cert: file('etcd.crt', serving.cert), key: file('etcd.key', serving.key) },
    client: { ca: authority.cert, ...client },
  })
  etcdFlags = ['cacert', 'cert', 'key'].map((name, at) => `--${name}=${[ca, file('client.crt', client.cert), file('client.key', client.key)][at]}`)
  const users = ssl.authority('users')
  const jane = ssl.sign(users, { subject: '/O=system:masters/CN=jane' })
  file('jane.crt', jane.cert)
  file('jane.key', jane.key)
  const flags = [
    `--client-ca-file=${file('users.crt', users.cert)}`,
    `--etcd-servers=${etcd.url}`,
    `--etcd-cafile=${ca}`,
    `--etcd-certfile=${ssl.folder}/client.crt`,
    `--etcd-keyfile=${ssl.folder}/client.key`,
  ]
  servers = await Promise.all(['a', 'b'].map((name) => startApiServer([`--data-dir=${ssl.folder}/${name}`, ...flags])))
})
after(async () => {
  if (!skip) {
    await Promise.all(servers.map((server) => server.end('SIGTERM')))
    await etcd.stop()
  }
  ssl.remove()
})

function kubectl(server: ApiServerProcess, ...args: string[]): string {
  const flags = ['--kubeconfig=/dev/null', `--server=https://127.0.0.1:${server.port}`, '--insecure-skip-tls-verify']
  const identity = [`--client-certificate=${ssl.folder}/jane.crt`, `--client-key=${ssl.folder}/jane.key`]
  const { stdout, stderr, status } = spawnSync('kubectl', [...flags, ...identity, ...args], { encoding: 'utf8', env: { ...process.env, HOME: ssl.folder } })
  assert.equal(status, 0, stderr)
  return stdout
}

function etcdctl(...args: string[]): string {
  const env = { ...process.env, ETCDCTL_API: '3' }
  const { stdout, stderr, status } = spawnSync('etcdctl', [`--endpoints=${etcd.url}`, ...etcdFlags, ...args], { encoding: 'utf8', env })
  assert.equal(status, 0, stderr)
  return stdout
}

test('ETC-19 HA-02 objects stand in etcd under the keys of upstream, and etcd saw only our certificate', { skip }, () => {
  const [a] = servers as [ApiServerProcess]
  kubectl(a, 'create', 'namespace', 'shop')
  kubectl(a, '-n', 'shop', 'create', 'configmap', 'prices', '--from-literal=tea=3')
  kubectl(a, '-n', 'shop', 'create', 'service', 'clusterip', 'web', '--tcp=80')
  const keys = etcdctl('get', '/registry/', '--prefix', '--keys-only').split('\n')
  for (const key of ['/registry/namespaces/shop', '/registry/configmaps/shop/prices', '/registry/services/specs/shop/web']) assert.ok(keys.includes(key), key)
})

test('HA-01 what one server writes the other shows, and etcdctl takes away', { skip }, () => {
  const [a, b] = servers as [ApiServerProcess, ApiServerProcess]
  kubectl(a, 'create', 'configmap', 'shared', '--from-literal=from=a')
  assert.equal(kubectl(b, 'get', 'configmap', 'shared', '-o', 'jsonpath={.data.from}'), 'a')
  kubectl(b, 'patch', 'configmap', 'shared', '-p', '{"data":{"from":"b"}}')
  assert.equal(kubectl(a, 'get', 'configmap', 'shared', '-o', 'jsonpath={.data.from}'), 'b')
  etcdctl('del', '/registry/configmaps/default/shared')
  for (const server of [a, b]) assert.equal(kubectl(server, 'get', 'configmap', 'shared', '--ignore-not-found'), '')
})

test('ETC-19 a server that does not find its etcd says where it looked', { skip }, async () => {
  await assert.rejects(startApiServer([`--data-dir=${ssl.folder}/c`, '--etcd-servers=http://127.0.0.1:1']), /etcd does not answer at http:\/\/127\.0\.0\.1:1/)
  assert.ok(fs.existsSync(ssl.folder))
})
