/**
 * ETC-20: the backup and restore of etcd as guides to Kubernetes write it, by etcdctl and kubectl, against `skiff etcd serve` with an API server over it. Addresses,
 * paths and names are the script's variables; every command and flag is the guide's.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../support/etcdServer.ts'
import { openSsl } from '../support/openssl.ts'
import { type ApiServerProcess, obstacleToApiServer, startApiServer } from './support/apiServerProcess.ts'
import { endProcess, etcdCertificates, serveEtcd } from './support/servedEtcd.ts'

const skip = obstacleToEtcd() || obstacleToApiServer

const script = `#!/bin/bash
set -e
# Backup etcd
ETCDCTL_API=3 etcdctl \\
  --endpoints=$ENDPOINT \\
  --cert=$PKI/client.crt \\
  --key=$PKI/client.key \\
  --cacert=$PKI/ca.crt \\
  snapshot save $BACKUP/etcd-snapshot-$(date +%Y%m%d-%H%M%S).db
# Backup critical resources
kubectl get all,cm,secret,ing,pvc,pv -A -o yaml > $BACKUP/resources-$(date +%Y%m%d-%H%M%S).yaml
# The newest one
cp $(ls -t $BACKUP/etcd-snapshot-*.db | head -1) $BACKUP/etcd-snapshot.db
# Restore etcd
ETCDCTL_API=3 etcdctl \\
  snapshot restore $BACKUP/etcd-snapshot.db \\
  --data-dir=$RESTORED \\
  --initial-cluster=$MEMBER=https://10.0.1.10:2380 \\
  --initial-advertise-peer-urls=https://10.0.1.10:2380 \\
  --initial-cluster-token=etcd-cluster-1
`

const ssl = openSsl()
const children: ChildProcess[] = []
const servers: ApiServerProcess[] = []
const restoredServers: EtcdServer[] = []
const at = (name: string) => path.join(ssl.folder, name)
before(async () => {
  if (!skip) await fs.writeFile(at('tokens.csv'), 'administrator,root,1,system:masters\n', { mode: 0o600 })
})
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')))
  await Promise.all([...children.map((one) => endProcess(one, 'SIGKILL')), ...restoredServers.map((one) => one.stop())])
  ssl.remove()
})

async function serve(data: string, ...etcd: string[]): Promise<ApiServerProcess> {
  const server = await startApiServer([`--data-dir=${at(data)}`, `--token-auth-file=${at('tokens.csv')}`, ...etcd])
  servers.push(server)
  const cluster = { server: `https://127.0.0.1:${server.port}`, 'insecure-skip-tls-verify': true }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'administrator' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  await fs.writeFile(at('kubeconfig'), JSON.stringify(config), { mode: 0o600 })
  return server
}

const environment = (more: NodeJS.ProcessEnv = {}) => ({ ...process.env, HOME: ssl.folder, KUBECONFIG: at('kubeconfig'), PKI: ssl.folder, ...more })

function kubectl(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync('kubectl', args, { encoding: 'utf8', env: environment(), timeout: 60_000 })
  assert.equal(status, 0, stderr)
  return stdout
}

function runScript(port: number, member: string) {
  const variables = { ENDPOINT: `https://127.0.0.1:${port}`, BACKUP: at('backup'), RESTORED: at(`restored-${member}`), MEMBER: member }
  return spawnSync('bash', ['-s'], { input: script, encoding: 'utf8', env: environment(variables), timeout: 60_000 })
}

test('ETC-20 a script of etcdctl and kubectl backs up `skiff etcd serve`, and an etcd that it restores has every object', {
  skip,
  timeout: 240_000,
}, async () => {
  const { flags } = etcdCertificates(ssl)
  const store = await serveEtcd(flags)
  children.push(store.child)
  const files = [`--etcd-cafile=${at('ca.crt')}`, `--etcd-certfile=${at('client.crt')}`, `--etcd-keyfile=${at('client.key')}`]
  const first = await serve('api', `--etcd-servers=https://127.0.0.1:${store.port}`, ...files)
  kubectl('create', 'namespace', 'production')
  kubectl('-n', 'production', 'create', 'configmap', 'prices', '--from-literal=apple=3')
  kubectl('-n', 'production', 'create', 'secret', 'generic', 'door', '--from-literal=key=open')
  await fs.mkdir(at('backup'))

  const kinds = 'namespaces,configmaps,secrets,services,serviceaccounts,clusterroles,clusterrolebindings,flowschemas,priorityclasses'
  type Listed = { readonly items: readonly { readonly kind: string; readonly metadata: { readonly name: string; readonly uid: string } }[] }
  const listed = () =>
    (JSON.parse(kubectl('get', kinds, '-A', '-o', 'json')) as Listed).items.map(({ kind, metadata: { name, uid } }) => `${kind} ${name} ${uid}`)
  const before_ = listed()

  const { status, stdout, stderr } = runScript(store.port, 'default')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Snapshot saved at .*etcd-snapshot-\d{8}-\d{6}\.db/)
  const names = await fs.readdir(at('backup'))
  const resources = names.find((name) => name.endsWith('.yaml')) ?? ''
  assert.match(await fs.readFile(at(`backup/${resources}`), 'utf8'), /apple: "3"/)

  // The guide names another member than the one that etcdctl restores for unless --name is given.
  const other = runScript(store.port, 'etcd-1')
  assert.notEqual(other.status, 0)
  assert.match(other.stderr, /couldn't find local name "default" in the initial cluster configuration/)

  // What is written after the backup is not in it.
  kubectl('-n', 'production', 'create', 'configmap', 'late', '--from-literal=a=b')
  const lateUid = kubectl('-n', 'production', 'get', 'configmap', 'late', '-o', 'jsonpath={.metadata.uid}')
  await first.end('SIGTERM')
  await endProcess(store.child, 'SIGTERM')

  const restored = await startEtcd(undefined, at('restored-default'))
  restoredServers.push(restored)
  await serve('api', `--etcd-servers=${restored.url}`)
  assert.equal(kubectl('-n', 'production', 'get', 'configmap', 'prices', '-o', 'jsonpath={.data.apple}'), '3')
  assert.equal(kubectl('-n', 'production', 'get', 'secret', 'door', '-o', 'jsonpath={.data.key}'), Buffer.from('open').toString('base64'))
  const after_ = new Set(listed())
  assert.deepEqual(
    before_.filter((one) => !after_.has(one)),
    [],
  )
  assert.deepEqual(
    [...after_].filter((one) => one.includes(lateUid)),
    [],
  )
})
