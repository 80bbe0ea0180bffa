import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFlags, UsageError } from '../apiserver/options/flags.ts'
import { etcdServing } from '../component/options/etcdServing.ts'
import { readServeConfiguration } from './serveConfigFile.ts'

const { flags } = etcdServing
const read = (text: string) => readServeConfiguration('etcd.yml', text, flags)
const faultsOf = (text: string) => {
  try {
    read(text)
    return []
  } catch (error) {
    return error instanceof UsageError ? error.faults : assert.fail(error as Error)
  }
}

test('ETC-18 the YAML of one member of etcd becomes flags, and settings of members are left out with a warning', () => {
  const { args, warnings } = read(`
name: infra0
data-dir: /var/lib/etcd
wal-dir:
snapshot-count: 75000
quota-backend-bytes: 8589934592
listen-client-urls: https://10.0.0.1:2379,https://127.0.0.1:2379
advertise-client-urls: https://10.0.0.1:2379
initial-cluster: infra0=https://10.0.0.1:2380
auto-compaction-mode: periodic
auto-compaction-retention: "1"
grpc-keepalive-interval: 60000000000
grpc-keepalive-timeout: 5s
client-transport-security:
  cert-file: server.crt
  key-file: server.key
  client-cert-auth: true
  trusted-ca-file: ca.crt
  auto-tls: false
peer-transport-security:
log-outputs: [stderr]
`)
  const values = parseFlags(flags, args)
  assert.deepEqual(values['listen-client-urls'], ['https://10.0.0.1:2379', 'https://127.0.0.1:2379'])
  assert.equal(values['quota-backend-bytes'], 8589934592)
  assert.equal(values['grpc-keepalive-interval'], 60_000)
  assert.equal(values['grpc-keepalive-timeout'], 5_000)
  assert.equal(values['auto-compaction-retention'], '1')
  assert.equal(values['client-cert-auth'], true)
  assert.deepEqual([values.name, values['data-dir'], values['cert-file'], values['trusted-ca-file']], ['infra0', '/var/lib/etcd', 'server.crt', 'ca.crt'])
  assert.deepEqual(warnings, ['etcd.yml: snapshot-count: left out', 'etcd.yml: initial-cluster: left out', 'etcd.yml: log-outputs: left out'])
})

const refused = [
  {
    name: 'several members',
    text: 'initial-cluster: a=http://10.0.0.1:2380,b=http://10.0.0.2:2380',
    fault: 'initial-cluster: names 2 members: skiff etcd serve is one',
  },
  {
    name: 'a list of revoked certificates',
    text: 'client-transport-security: {client-crl-file: crl.pem}',
    fault: 'client-transport-security.client-crl-file: is not supported',
  },
  {
    name: 'certificates of etcd’s own making',
    text: 'client-transport-security: {auto-tls: true}',
    fault: 'client-transport-security.auto-tls: is not supported',
  },
  { name: 'cipher suites', text: 'cipher-suites: [TLS_AES_128_GCM_SHA256]', fault: 'cipher-suites: is not supported' },
  { name: 'a list', text: '- name: a', fault: "must be a mapping of etcd's settings" },
]
for (const { name, text, fault } of refused)
  test(`ETC-18 a configuration file with ${name} is refused`, () => {
    assert.deepEqual(faultsOf(text), [`etcd.yml: ${fault}`])
  })

test('ETC-18 a configuration file that is no YAML is refused with its name', () => {
  assert.match(faultsOf('a: [')[0] ?? '', /^etcd\.yml: /)
})

test('ETC-18 an empty configuration file stands for no flags', () => {
  assert.deepEqual(read('# nothing\n'), { args: [], warnings: [] })
})
