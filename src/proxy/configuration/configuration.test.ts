import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultDocument, documentText, type ProxyConfigurationDocument, readDocument } from './document.ts'
import { unsupportedSettings, validateDocument } from './validate.ts'

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n'
const documentOf = (text: string) => defaultDocument(readDocument(head + text).given)

test('SVC-06 a document without fields has upstream’s defaults, and reads again as it was written', () => {
  const document = documentOf('')
  assert.equal(document.healthzBindAddress, '0.0.0.0:10256')
  assert.equal(document.metricsBindAddress, '127.0.0.1:10249')
  assert.equal(document.iptables.syncPeriod, '30s')
  assert.equal(document.conntrack.tcpEstablishedTimeout, '24h0m0s')
  assert.equal(document.oomScoreAdj, -999)
  assert.deepEqual(validateDocument(document), [])
  const { given, warnings } = readDocument(documentText(document))
  assert.deepEqual(warnings, [])
  assert.deepEqual(defaultDocument(given), document)
})

test('SVC-06 addresses without a port get their port, and an IPv6 bind address gets IPv6 defaults', () => {
  const ports = ({ healthzBindAddress, metricsBindAddress }: ProxyConfigurationDocument) => [healthzBindAddress, metricsBindAddress]
  assert.deepEqual(ports(documentOf('bindAddress: "::"\n')), ['[::]:10256', '[::1]:10249'])
  assert.deepEqual(ports(documentOf('healthzBindAddress: 10.0.0.1\nmetricsBindAddress: "fd00::1"\n')), ['10.0.0.1:10256', '[fd00::1]:10249'])
  assert.deepEqual(ports(documentOf('healthzBindAddress: 10.0.0.1:99\n')), ['10.0.0.1:99', '127.0.0.1:10249'])
})

test('SVC-06 a zero that Go tells apart from an absent field stays, another one is the default', () => {
  const document = documentOf('conntrack: {maxPerCore: 0}\noomScoreAdj: 0\niptables: {syncPeriod: 0s, localhostNodePorts: false}\n')
  assert.deepEqual([document.conntrack.maxPerCore, document.oomScoreAdj, document.iptables.syncPeriod], [0, 0, '30s'])
  assert.equal(document.iptables.localhostNodePorts, false)
})

test('SVC-06 unknown fields are named in warnings and ignored; other kinds and values of another type are refused', () => {
  const { given, warnings } = readDocument(`${head}mode: nftables\nudpIdleTimeout: 1s\nconntrack: {tcpMagic: 1}\n`)
  assert.deepEqual(given, { mode: 'nftables', conntrack: {} })
  assert.deepEqual(
    warnings.map((one) => /unknown field "(.*)"/.exec(one)?.[1]),
    ['udpIdleTimeout', 'conntrack.tcpMagic'],
  )
  assert.throws(() => readDocument('kind: KubeletConfiguration\n'), /no kind "KubeletConfiguration" is registered/)
  assert.throws(() => readDocument(`${head}conntrack: {maxPerCore: many}\n`), /conntrack.maxPerCore: "many" is not a whole number/)
  assert.throws(() => readDocument(`${head}iptables: 3\n`), /iptables: 3 is not an object/)
})

const invalid: readonly (readonly [string, RegExp])[] = [
  ['mode: kernelspace', /Mode.ProxyMode: Invalid value: "kernelspace"/],
  ['iptables: {masqueradeBit: 32}', /KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 32: must be within the range \[0, 31\]/],
  ['iptables: {minSyncPeriod: 40s}', /SyncPeriod: Invalid value: "40s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod/],
  ['conntrack: {min: -1}', /KubeProxyConntrackConfiguration.Min: Invalid value: -1/],
  ['oomScoreAdj: 1001', /OOMScoreAdj: Invalid value: 1001: must be within the range \[-1000, 1000\]/],
  ['bindAddress: here', /BindAddress: Invalid value: "here": not a valid textual/],
  ['healthzBindAddress: "10.0.0.1:0"', /HealthzBindAddress: Invalid value: "0": must be a valid port/],
  ['metricsBindAddress: host:1', /MetricsBindAddress: Invalid value: "host": must be a valid IP/],
  ['metricsBindAddress: host', /MetricsBindAddress: Invalid value: "host": must be IP:port/],
  ['nodePortAddresses: [10.0.0.0/8, primary]', /NodePortAddresses\[1\]: .* can't use both 'primary' and CIDRs/],
  ['nodePortAddresses: [10.0.0.0]', /NodePortAddresses\[0\]: .* must be a valid CIDR/],
  ['detectLocalMode: Guess', /DetectLocalMode: Unsupported value: "Guess"/],
  ['detectLocalMode: BridgeInterface', /DetectLocalConfiguration.InterfaceName: .* must not be empty/],
  ['clusterCIDR: 10.0.0.0/8,10.1.0.0/16', /ClusterCIDRs: .* dual-stack pair/],
  ['configSyncPeriod: -1s', /ConfigSyncPeriod: Invalid value: "-1s": must be greater than 0/],
  ['showHiddenMetricsForVersion: "1.2"', /ShowHiddenMetricsForVersion/],
  ['clientConnection: {burst: -1}', /ClientConnection.Burst/],
]

for (const [text, expected] of invalid) {
  test(`SVC-06 the configuration ${text} is refused with upstream’s message`, () => {
    const faults = validateDocument(documentOf(`${text}\n`))
    assert.equal(faults.length, 1, faults.join('\n'))
    assert.match(faults[0] ?? '', expected)
  })
}

const unsupported: readonly (readonly [string, RegExp])[] = [
  ['iptables: {masqueradeBit: 15}', /iptables.masqueradeBit/],
  ['mode: nftables\nnftables: {masqueradeBit: 15}', /nftables.masqueradeBit/],
  ['iptables: {localhostNodePorts: false}', /localhostNodePorts/],
  ['detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: br0}', /detectLocalMode BridgeInterface/],
  ['mode: ipvs\nipvs: {scheduler: lc}', /ipvs.scheduler/],
  ['mode: ipvs\nipvs: {strictARP: true}', /ipvs.strictARP/],
  ['mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.0/8]}', /ipvs.excludeCIDRs/],
  ['mode: ipvs\nipvs: {udpTimeout: 1s}', /ipvs.udpTimeout/],
  ['mode: userspace\nnodePortAddresses: [10.0.0.0/8]', /userspace/],
]

for (const [text, expected] of unsupported) {
  test(`SVC-06 the configuration ${text.replace('\n', ', ')} is refused by name with the reason`, () => {
    const document = documentOf(`${text}\n`)
    assert.deepEqual(validateDocument(document), [])
    const reasons = unsupportedSettings(document)
    assert.equal(reasons.length, 1)
    assert.match(reasons[0] ?? '', expected)
  })
}
