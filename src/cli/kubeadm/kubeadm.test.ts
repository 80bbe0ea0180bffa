/** Files of kubeadm: what they stand for, what is left out with its path, and what is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseYamlDocuments } from '#api/machinery/yaml'
import type { CommandError } from '../exitCodes.ts'
import { isKubeadmFile } from './configFile.ts'
import { isAdvertisable, joinEndpoint, parseEndpoint } from './endpoint.ts'
import { readJoinConfiguration } from './joinConfiguration.ts'
import { type ComponentFlags, kubeadmUpValues } from './upFlags.ts'

const known: ComponentFlags = {
  'kube-apiserver': new Set(['max-requests-inflight', 'max-mutating-requests-inflight', 'audit-log-path', 'audit-log-maxage', 'encryption-provider-config']),
  'kube-controller-manager': new Set(['concurrent-deployment-syncs', 'leader-elect']),
  'kube-scheduler': new Set(['leader-elect']),
}

function upOf(text: string) {
  const report = { warnings: [] as string[] }
  return { values: kubeadmUpValues(text, known, report), warnings: report.warnings }
}

function joinOf(text: string) {
  const report = { warnings: [] as string[] }
  return { ...readJoinConfiguration(text, report), warnings: report.warnings }
}

const highlyAvailable = `# A file of v1beta3
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.26.0
controlPlaneEndpoint: "api.k8s.example.com:6443" # a load balancer
etcd:
  external:
    endpoints:
      - https://etcd-1.example.com:2379
      - https://etcd-2.example.com:2379
      - https://etcd-3.example.com:2379
    caFile: /etc/kubernetes/pki/etcd/ca.crt
    certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
    keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key
apiServer:
  extraArgs:
    max-requests-inflight: "1000"
    max-mutating-requests-inflight: "500"
    audit-log-path: /var/log/kubernetes/audit.log
    audit-log-maxage: "30"
    encryption-provider-config: /etc/kubernetes/encryption-config.yaml
controllerManager:
  extraArgs:
    concurrent-deployment-syncs: "10"
    leader-elect: "true"
scheduler:
  extraArgs:
    leader-elect: "true"
    scheduling-queue-size: "10000"
`

test('HA-05 a ClusterConfiguration of v1beta3 with maps of flags is read, with warnings for what Skiff does not have', () => {
  assert.deepEqual(upOf(highlyAvailable), {
    values: {
      'control-plane-endpoint': 'api.k8s.example.com:6443',
      'etcd-servers': 'https://etcd-1.example.com:2379,https://etcd-2.example.com:2379,https://etcd-3.example.com:2379',
      'etcd-cafile': '/etc/kubernetes/pki/etcd/ca.crt',
      'etcd-certfile': '/etc/kubernetes/pki/apiserver-etcd-client.crt',
      'etcd-keyfile': '/etc/kubernetes/pki/apiserver-etcd-client.key',
      'kube-apiserver-arg': [
        'max-requests-inflight=1000',
        'max-mutating-requests-inflight=500',
        'audit-log-path=/var/log/kubernetes/audit.log',
        'audit-log-maxage=30',
        'encryption-provider-config=/etc/kubernetes/encryption-config.yaml',
      ],
      'kube-controller-manager-arg': ['concurrent-deployment-syncs=10', 'leader-elect=true'],
      'kube-scheduler-arg': ['leader-elect=true'],
    },
    warnings: [
      'ClusterConfiguration: kubeadm.k8s.io/v1beta3 is an older version: kubeadm.k8s.io/v1beta4 is the newest',
      'kubernetesVersion: v1.26.0 was asked for, and this Skiff is Kubernetes v1.36',
      'apiServer.extraArgs: a map is the form of v1beta3; v1beta4 has a list of names and values',
      'controllerManager.extraArgs: a map is the form of v1beta3; v1beta4 has a list of names and values',
      'scheduler.extraArgs: a map is the form of v1beta3; v1beta4 has a list of names and values',
      'scheduler.extraArgs.scheduling-queue-size: left out, kube-scheduler of a cluster of skiff up has no flag --scheduling-queue-size',
    ],
  })
})

test('HA-05 several documents of v1beta4 are read together; those of other kinds are left out with a warning', () => {
  const text = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.1, bindPort: 6443}
nodeRegistration: {name: a, criSocket: unix:///run/containerd/containerd.sock}
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: lab
kubernetesVersion: v1.36.2
networking: {serviceSubnet: 10.97.0.0/16, podSubnet: 10.245.0.0/16, dnsDomain: cluster.local}
apiServer:
  certSANs: [api.example.com, 203.0.113.5]
  extraArgs: [{name: audit-log-path, value: /a}, {name: audit-log-maxage, value: "3"}]
  extraVolumes: [{name: a, hostPath: /a, mountPath: /a}]
etcd: {local: {dataDir: /var/lib/etcd}}
imageRepository: registry.example.com
certificateSANs: [misplaced]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 50
---
apiVersion: v1
kind: ConfigMap
`
  const { values, warnings } = upOf(text)
  assert.deepEqual(values, {
    name: 'lab',
    'service-cidr': '10.97.0.0/16',
    'pod-cidr': '10.245.0.0/16',
    'apiserver-cert-extra-sans': 'api.example.com,203.0.113.5',
    etcd: '1',
    'kube-apiserver-arg': ['audit-log-path=/a', 'audit-log-maxage=3'],
    'apiserver-advertise-address': '10.0.0.1',
    port: 6443,
  })
  assert.deepEqual(
    warnings.map((warning) => warning.slice(0, warning.indexOf(':'))),
    [
      'KubeletConfiguration',
      'ConfigMap',
      'etcd.local.dataDir',
      'apiServer.extraVolumes',
      'imageRepository',
      'certificateSANs',
      'bootstrapTokens',
      'nodeRegistration.name',
      'nodeRegistration.criSocket',
    ],
  )
})

const cluster = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n'
const init = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n'
const refusedUp = [
  [
    'apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\n',
    /^apiVersion kubeadm\.k8s\.io\/v1beta2 of ClusterConfiguration: expected kubeadm\.k8s\.io\/v1beta4 or/,
  ],
  [`${cluster}---\n${cluster}`, /^two documents of kind ClusterConfiguration/],
  ['apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n', /^it has no document of kind ClusterConfiguration or InitConfiguration/],
  [`${cluster}apiServer: {extraArgs: {audit-log-maxage: 30}}`, /^apiServer\.extraArgs\.audit-log-maxage: expected a text/],
  [`${cluster}apiServer: {extraArgs: [{value: x}]}`, /^apiServer\.extraArgs\[0\]\.name: it is missing/],
  [`${cluster}apiServer: [a]`, /^apiServer: expected an object/],
  [`${cluster}etcd: {external: {endpoints: []}}`, /^etcd\.external\.endpoints: it is missing/],
  [`${cluster}etcd: {external: {endpoints: [https://a:1]}, local: {}}`, /^etcd\.local and etcd\.external/],
  [`${cluster}controlPlaneEndpoint: https://api.example.com`, /^controlPlaneEndpoint: expected HOST or HOST:PORT/],
  [`${cluster}dns: {disabled: true}`, /^dns\.disabled: cluster DNS/],
  [`${init}dryRun: true`, /^dryRun: /],
  [`${init}localAPIEndpoint: {advertiseAddress: 127.0.0.1}`, /^localAPIEndpoint\.advertiseAddress: /],
  [`${init}localAPIEndpoint: {bindPort: 70000}`, /^localAPIEndpoint\.bindPort: expected a whole number from 1 to 65535/],
] as const
for (const [text, message] of refusedUp) {
  test(`HA-05 a file of kubeadm is refused for ${JSON.stringify(text.slice(text.lastIndexOf('---') + 1).slice(-70))}`, () => {
    assert.throws(
      () => upOf(text),
      (error: CommandError) => error.exit === 'usage' && message.test(error.message),
    )
  })
}

const joining = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: abcdef.0123456789abcdef
    apiServerEndpoint: 10.0.0.1:6443
    caCertHashes: ["sha256:${'0'.repeat(64)}"]
`

test('KUB-23 a JoinConfiguration says where a machine joins, as which node, and with which flags of the kubelet', () => {
  const node = `nodeRegistration:
  name: machine-b
  criSocket: /run/containerd/containerd.sock
  taints: [{key: dedicated, value: db, effect: NoSchedule}, {key: slow, effect: NoExecute}]
  kubeletExtraArgs: [{name: node-labels, value: a=b}]
  imagePullPolicy: Always
caCertPath: /etc/ca.crt
`
  assert.deepEqual(joinOf(joining + node), {
    endpoint: '10.0.0.1:6443',
    token: 'abcdef.0123456789abcdef',
    hashes: [`sha256:${'0'.repeat(64)}`],
    skipsVerification: false,
    nodeName: 'machine-b',
    caFile: '/etc/ca.crt',
    kubeletFlags: [
      '--container-runtime-endpoint=unix:///run/containerd/containerd.sock',
      '--register-with-taints=dedicated=db:NoSchedule,slow:NoExecute',
      '--node-labels=a=b',
    ],
    controlPlane: undefined,
    warnings: ['nodeRegistration.imagePullPolicy: left out: no image is pulled to join'],
  })
})

test('HA-01 a JoinConfiguration with controlPlane joins a control plane', () => {
  const { controlPlane, warnings } = joinOf(
    `${joining}controlPlane:\n  certificateKey: ${'0f'.repeat(32)}\n  localAPIEndpoint: {advertiseAddress: 10.0.0.2, bindPort: 6444}\n`,
  )
  assert.deepEqual(controlPlane, { certificateKey: '0f'.repeat(32), advertiseAddress: '10.0.0.2', bindPort: 6444 })
  assert.deepEqual(warnings, [])
})

const refusedJoin = [
  ['apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n', /^it has no document of kind JoinConfiguration/],
  ['apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n', /^discovery: it is missing/],
  [
    'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: {file: {kubeConfigPath: /a}}\n',
    /^discovery\.file: Skiff discovers a cluster by a token/,
  ],
  [`${joining}  tlsBootstrapToken: fedcba.0123456789abcdef\n`, /^discovery\.tlsBootstrapToken and discovery\.bootstrapToken\.token differ/],
  [`${joining}dryRun: true\n`, /^dryRun: /],
  [`${joining}nodeRegistration: {taints: [{key: a}]}\n`, /^nodeRegistration\.taints\[0\]\.key and nodeRegistration\.taints\[0\]\.effect/],
] as const
for (const [text, message] of refusedJoin) {
  test(`KUB-23 a JoinConfiguration is refused that ends with ${JSON.stringify(text.slice(-60))}, without its token in the message`, () => {
    assert.throws(
      () => joinOf(text),
      (error: CommandError) => error.exit === 'usage' && message.test(error.message) && !error.message.includes('0123456789abcdef'),
    )
  })
}

test('HA-05 a file of kubeadm is known by the group of a document, and a file of Skiff’s own is none', () => {
  const isKubeadms = (text: string) => isKubeadmFile(parseYamlDocuments(text))
  assert.ok(isKubeadms(highlyAvailable))
  assert.ok(isKubeadms(`{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"}`))
  assert.ok(!isKubeadms('name: dev\nnodes: 2\n'))
  assert.ok(!isKubeadms('- 1\n'))
})

test('HA-05 endpoints are hosts with or without a port, IPv6 addresses in brackets before one', () => {
  const cases: readonly [string, ReturnType<typeof parseEndpoint>][] = [
    ['api.example.com', { host: 'api.example.com' }],
    ['api.example.com:6443', { host: 'api.example.com', port: 6443 }],
    ['10.0.0.1:1', { host: '10.0.0.1', port: 1 }],
    ['[fd00::1]:6443', { host: 'fd00::1', port: 6443 }],
    ['fd00::1', { host: 'fd00::1' }],
    ['[10.0.0.1]:6443', undefined],
    ['a:0', undefined],
    ['a:65536', undefined],
    ['a b', undefined],
    ['https://a:1', undefined],
    ['', undefined],
  ]
  for (const [text, want] of cases) assert.deepEqual(parseEndpoint(text), want, text)
  assert.equal(joinEndpoint({ host: 'fd00::1', port: 1 }), '[fd00::1]:1')
  for (const text of ['127.0.0.1', '0.0.0.0', '::1', '::', '224.0.0.1', 'localhost']) assert.ok(!isAdvertisable(text), text)
  for (const text of ['10.0.0.1', 'fd00::1']) assert.ok(isAdvertisable(text), text)
})
