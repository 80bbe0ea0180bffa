/** How a further control plane is started, from the configuration that the cluster publishes; and which clusters cannot have one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toYaml } from '#api/machinery/yaml'
import type { CommandError } from '#cli/exitCodes'
import { readClusterConfiguration } from '#cli/kubeadm/clusterConfiguration'
import { readDocuments } from '#cli/kubeadm/documents'
import type { ClusterState } from '../localCluster/clusterState.ts'
import { controlPlaneFiles } from './controlPlanePaths.ts'
import { planControlPlane, refuseUnshared } from './controlPlanePlan.ts'
import { clusterConfigurationOf, sharedEtcdOf } from './publishedConfiguration.ts'

const ofEtcd = ['--etcd-servers=https://10.0.0.9:2379,https://10.0.0.8:2379', '--etcd-cafile=/a/ca.crt', '--etcd-certfile=/a/c.crt', '--etcd-keyfile=/a/c.key']
const state: ClusterState = {
  name: 'lab',
  id: '0123',
  port: 6443,
  nodes: [],
  simulatedNodes: [],
  verbosity: 2,
  reach: { advertiseAddress: '10.0.0.1', controlPlaneEndpoint: 'api.example.com', certNames: ['203.0.113.5'] },
  ranges: { clusterCidr: '10.245.0.0/16', serviceCidr: '10.97.0.0/16' },
  history: { age: '24h' },
  apiServerArgs: [...ofEtcd, '--audit-log-path=/var/log/audit.log', '--profiling'],
  controllerManagerArgs: ['--controllers=-ttl-controller'],
  schedulerArgs: ['--leader-elect-lease-duration=30s'],
}
const paths = { store: '/x/store', pki: '/x/pki' }

/** As the machine that joins reads what the server of the cluster has published. */
function published(from: ClusterState) {
  const report = { warnings: [] }
  const fields = readDocuments(toYaml(clusterConfigurationOf(from, paths)), ['ClusterConfiguration'], report).get('ClusterConfiguration')
  assert.ok(fields)
  return { settings: readClusterConfiguration(fields, report), report }
}

const files = controlPlaneFiles('/etc/kubernetes')
const server = { address: '10.0.0.2', port: 6443, hostName: 'machine-b', joinedThrough: { host: '10.0.0.1', port: 6443 } }
const etcdNames = { ca: 'external-etcd-ca.crt', cert: 'external-etcd.crt', key: 'external-etcd.key' }

test('HA-01 a further control plane starts with the cluster’s flags, over its etcd, on its own address', () => {
  const plan = planControlPlane(published(state).settings, server, files, etcdNames)
  assert.equal(plan.endpoint, 'api.example.com:6443')
  for (const name of ['10.97.0.1', '10.0.0.2', 'machine-b', '10.0.0.1', 'api.example.com', '203.0.113.5', '127.0.0.1', 'kubernetes.default.svc'])
    assert.ok(plan.servingNames.includes(name), name)
  const wanted = [
    '--etcd-servers=https://10.0.0.9:2379,https://10.0.0.8:2379',
    '--etcd-cafile=/etc/kubernetes/pki/external-etcd-ca.crt',
    '--etcd-certfile=/etc/kubernetes/pki/external-etcd.crt',
    '--etcd-keyfile=/etc/kubernetes/pki/external-etcd.key',
    '--advertise-address=10.0.0.2',
    '--secure-port=6443',
    '--service-cluster-ip-range=10.97.0.0/16',
    '--audit-log-path=/var/log/audit.log',
    '--profiling=true',
    '--node-apis=true',
    // Another server that compacts sooner would take the history away.
    '--history=24h',
  ]
  for (const flag of wanted) assert.ok(plan.apiServer.includes(flag), flag)
  assert.ok(plan.controllerManager.includes('--cluster-cidr=10.245.0.0/16'))
  assert.ok(plan.controllerManager.indexOf('--controllers=-ttl-controller') < plan.controllerManager.findIndex((flag) => flag.startsWith('--controllers=*')))
  assert.ok(plan.scheduler.includes('--leader-elect-lease-duration=30s'))
})

test('HA-01 where etcd asks for no certificates, the further control plane shows none', () => {
  const plan = planControlPlane(published(state).settings, server, files, { ca: '', cert: '', key: '' })
  assert.ok(!plan.apiServer.some((flag) => /^--etcd-(ca|cert|key)file/.test(flag)))
})

test('HA-05 the configuration that a cluster publishes is read without a warning', () => {
  const { warnings } = published(state).report
  assert.deepEqual(warnings, ["certificatesDir: left out: certificates are in the cluster's directory"])
})

const refused = [
  { name: 'with its objects in a file', state: { ...state, apiServerArgs: [] }, message: /keeps its objects on its own machine/ },
  {
    name: 'with an etcd on loopback',
    state: { ...state, apiServerArgs: ['--etcd-servers=http://127.0.0.1:2379'] },
    message: /reaches its etcd at http:\/\/127\.0\.0\.1:2379/,
  },
  { name: 'with controllers that ask for no lease', state: { ...state, controllerManagerArgs: ['--leader-elect=false'] }, message: /would act at once/ },
  { name: 'with a scheduler that asks for no lease', state: { ...state, schedulerArgs: ['--leader-elect=false'] }, message: /would act at once/ },
]
for (const { name, state: given, message } of refused) {
  test(`HA-01 a cluster ${name} gets no further control plane on another machine`, () => {
    assert.throws(
      () => refuseUnshared(published(given).settings),
      (error: CommandError) => error.exit === 'unmetPrerequisite' && message.test(error.message),
    )
  })
}

for (const url of [
  'http://localhost:2379',
  '127.0.0.1:2379',
  'https://127.8.0.1:2379',
  'https://[::1]:2379',
  'https://etcd.localhost:2379',
  'unix:///run/etcd.sock',
])
  test(`HA-01 an etcd at ${url} is not shared, and a further control plane is refused over it`, () => {
    const given = { ...state, apiServerArgs: [`--etcd-servers=https://10.0.0.9:2379,${url}`] }
    assert.equal(sharedEtcdOf(given), undefined)
    assert.throws(
      () => refuseUnshared(published(given).settings),
      (error: CommandError) => error.exit === 'unmetPrerequisite' && error.message.includes(`reaches its etcd at ${url}`),
    )
  })

test('HA-01 an etcd is shared whose endpoints are of other machines, by name or address', () => {
  const endpoints = ['https://etcd.example.com:2379', 'https://10.0.0.9:2379', 'https://[fd00::9]:2379']
  assert.deepEqual(sharedEtcdOf({ apiServerArgs: [`--etcd-servers=${endpoints.join(',')}`] })?.endpoints, endpoints)
})
