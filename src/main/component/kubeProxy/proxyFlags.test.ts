import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConfigFile } from '#apiserver/core/configFile'
import { readOptions } from '../../apiserver/options/readOptions.ts'
import { conntrackSettings } from './hostSettings.ts'
import { proxyFlags } from './proxyFlags.ts'

const file = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n'
const context = { file: () => ({ read: async () => file }) as unknown as ConfigFile }
const read = async (...args: string[]) => (await readOptions({ proxy: proxyFlags }, args, context)).proxy

/** Every flag of kube-proxy v1.36 on Linux, with a value: it works, it has no effect and a warning says so, or it is refused by name. */
const upstream: Readonly<Record<string, readonly [value: string, outcome: 'works' | 'warns' | 'refused']>> = {
  'bind-address': ['10.0.0.1', 'works'],
  'bind-address-hard-fail': ['true', 'works'],
  'boot-id-file': ['/x', 'warns'],
  cleanup: ['true', 'works'],
  'cluster-cidr': ['10.0.0.0/8', 'works'],
  config: ['/x', 'works'],
  'config-sync-period': ['1m', 'warns'],
  'conntrack-max-per-core': ['0', 'works'],
  'conntrack-min': ['1', 'works'],
  'conntrack-tcp-be-liberal': ['true', 'works'],
  'conntrack-tcp-timeout-close-wait': ['1m', 'works'],
  'conntrack-tcp-timeout-established': ['1m', 'works'],
  'conntrack-udp-timeout': ['1m', 'works'],
  'conntrack-udp-timeout-stream': ['1m', 'works'],
  'detect-local-mode': ['BridgeInterface', 'refused'],
  'feature-gates': ['AllAlpha=false', 'works'],
  'healthz-bind-address': ['10.0.0.1:1', 'works'],
  'healthz-port': ['1', 'warns'],
  'hostname-override': ['a', 'works'],
  'init-only': ['true', 'works'],
  'iptables-localhost-nodeports': ['false', 'refused'],
  'iptables-masquerade-bit': ['1', 'refused'],
  'iptables-min-sync-period': ['2s', 'works'],
  'iptables-sync-period': ['1m', 'works'],
  'ipvs-exclude-cidrs': ['10.0.0.0/8', 'refused'],
  'ipvs-min-sync-period': ['1s', 'works'],
  'ipvs-scheduler': ['lc', 'refused'],
  'ipvs-strict-arp': ['true', 'refused'],
  'ipvs-sync-period': ['1m', 'works'],
  'ipvs-tcp-timeout': ['1m', 'refused'],
  'ipvs-tcpfin-timeout': ['1m', 'refused'],
  'ipvs-udp-timeout': ['1m', 'refused'],
  'kube-api-burst': ['1', 'works'],
  'kube-api-content-type': ['application/json', 'warns'],
  'kube-api-qps': ['1.5', 'works'],
  kubeconfig: ['/x', 'works'],
  'log-flush-frequency': ['1s', 'warns'],
  'log-json-info-buffer-size': ['1', 'warns'],
  'log-json-split-stream': ['true', 'warns'],
  'log-text-info-buffer-size': ['1', 'warns'],
  'log-text-split-stream': ['true', 'warns'],
  'logging-format': ['json', 'works'],
  'machine-id-file': ['/x', 'warns'],
  'masquerade-all': ['true', 'works'],
  master: ['https://x', 'works'],
  'metrics-bind-address': ['10.0.0.1:1', 'works'],
  'metrics-port': ['1', 'warns'],
  'nodeport-addresses': ['primary', 'works'],
  'oom-score-adj': ['0', 'works'],
  'pod-bridge-interface': ['br0', 'works'],
  'pod-interface-name-prefix': ['veth', 'works'],
  profiling: ['true', 'works'],
  'proxy-mode': ['nftables', 'works'],
  'show-hidden-metrics-for-version': ['1.35', 'works'],
  v: ['3', 'works'],
  vmodule: ['a=1', 'warns'],
  'write-config-to': ['/x', 'works'],
}

test('ARC-06 each flag of kube-proxy works, is accepted with a warning, or is refused by name', async () => {
  assert.deepEqual(Object.keys(proxyFlags.flags).sort(), Object.keys(upstream).sort())
  for (const [name, [value, outcome]] of Object.entries(upstream)) {
    const more = name.startsWith('ipvs-') ? ['--proxy-mode=ipvs'] : name === 'detect-local-mode' ? ['--pod-bridge-interface=br0'] : []
    const asked = read(`--${name}=${value}`, ...more)
    if (outcome === 'refused') await assert.rejects(asked, /not supported/, name)
    else assert.equal((await asked).warnings.length, outcome === 'warns' ? 1 : 0, name)
  }
})

test('ARC-06 flags become the configuration: mode, ranges, addresses and periods', async () => {
  const { document, hostnameOverride } = await read(
    ...['--proxy-mode=nftables', '--cluster-cidr=10.0.0.0/8,fd00::/8', '--nodeport-addresses=10.0.0.0/8', '--hostname-override= Node-A '],
    ...['--iptables-min-sync-period=5s', '--masquerade-all', '--kube-api-qps=2.5', '--conntrack-max-per-core=0'],
  )
  assert.deepEqual([document.mode, document.clusterCIDR, document.nodePortAddresses], ['nftables', '10.0.0.0/8,fd00::/8', ['10.0.0.0/8']])
  assert.deepEqual([document.nftables.minSyncPeriod, document.nftables.masqueradeAll], ['5s', true])
  assert.deepEqual([document.clientConnection.qps, document.conntrack.maxPerCore, hostnameOverride], [2.5, 0, 'node-a'])
})

test('ARC-06 without flags the mode is iptables on all addresses, and nftables serves node ports on the primary addresses', async () => {
  const { document, servesHealth, servesMetrics } = await read()
  assert.deepEqual([document.mode, document.nodePortAddresses, document.detectLocalMode], ['iptables', null, 'ClusterCIDR'])
  assert.deepEqual([servesHealth, servesMetrics], [true, true])
  assert.deepEqual((await read('--proxy-mode=nftables')).document.nodePortAddresses, ['primary'])
})

test('ARC-06 an empty address and the deprecated port 0 turn a port off', async () => {
  assert.equal((await read('--healthz-bind-address=')).servesHealth, false)
  assert.equal((await read('--metrics-bind-address=')).servesMetrics, false)
  assert.equal((await read('--healthz-port=0')).servesHealth, false)
  assert.equal((await read('--metrics-port=0')).servesMetrics, false)
  assert.equal((await read('--healthz-port=99')).document.healthzBindAddress, '0.0.0.0:99')
})

test('ARC-06 a configuration file wins over flags of the same meaning, and a warning names each', async () => {
  const { document, warnings, hostnameOverride } = await read('--config=/x', '--proxy-mode=ipvs', '--hostname-override=b')
  assert.deepEqual([document.mode, hostnameOverride], ['nftables', 'b'])
  assert.deepEqual(warnings, ['--proxy-mode is ignored: --config names a file'])
})

test('ARC-06 the limits of connection tracking follow the processors and the minimum; 0 leaves the host as it is', async () => {
  const { conntrack } = (await read()).document
  assert.equal(conntrackSettings(conntrack, 2).get('nf_conntrack_max'), 131_072)
  assert.equal(conntrackSettings(conntrack, 8).get('nf_conntrack_max'), 262_144)
  assert.equal(conntrackSettings(conntrack, 2).get('nf_conntrack_tcp_timeout_established'), 86_400)
  assert.equal(conntrackSettings({ ...conntrack, maxPerCore: 0 }, 8).has('nf_conntrack_max'), false)
  assert.equal(conntrackSettings(conntrack, 2).has('nf_conntrack_udp_timeout'), false)
})
