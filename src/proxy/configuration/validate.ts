/**
 * Validates a KubeProxyConfiguration (L3, pure) with upstream's messages, and names the settings that this proxy cannot follow.
 * Upstream: pkg/proxy/apis/config/validation/validation.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { isIpv6, parseCidr, parseIp } from '#api/machinery/ip'
import { featureGateFaults } from '#base/featureGates'
import { hiddenMetricsFault } from '#base/metrics'
import { primaryAddresses } from '../ownNode.ts'
import type { PeriodDocument, ProxyConfigurationDocument } from './document.ts'

const root = 'KubeProxyConfiguration'
const invalid = (path: string, value: unknown, why: string) => `${root}.${path}: Invalid value: ${JSON.stringify(value)}: ${why}`
const modes = ['iptables', 'ipvs', 'nftables', 'userspace']
const localModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix', '']
const ms = (text: string) => parseDuration(text) ?? 0

/** The periods of the mode that runs. */
export function periodsOf({ mode, iptables, ipvs, nftables }: ProxyConfigurationDocument): PeriodDocument {
  return mode === 'ipvs' ? ipvs : mode === 'nftables' ? nftables : iptables
}

/** @returns every fault, a sentence each */
export function validateDocument(document: ProxyConfigurationDocument): string[] {
  const { mode, oomScoreAdj, bindAddress, showHiddenMetricsForVersion } = document
  const hidden = hiddenMetricsFault(`${root}.ShowHiddenMetricsForVersion`, showHiddenMetricsForVersion)
  return [
    ...featureGateFaults(document.featureGates),
    ...bitFaults(document),
    ...conntrackFaults(document),
    ...(oomScoreAdj < -1000 || oomScoreAdj > 1000
      ? [invalid('KubeProxyLinuxConfiguration.OOMScoreAdj', oomScoreAdj, 'must be within the range [-1000, 1000]')]
      : []),
    ...(mode === '' || modes.includes(mode)
      ? []
      : [invalid('Mode.ProxyMode', mode, `must be ${modes.join(', ')} or blank (blank means the best-available proxy [currently iptables])`)]),
    ...(document.clientConnection.burst < 0 ? [invalid('ClientConnection.Burst', document.clientConnection.burst, 'must be greater than or equal to 0')] : []),
    ...periodFaults(document),
    ...(parseIp(bindAddress) ? [] : [invalid('BindAddress', bindAddress, 'not a valid textual representation of an IP address')]),
    ...hostPortFaults('HealthzBindAddress', document.healthzBindAddress),
    ...hostPortFaults('MetricsBindAddress', document.metricsBindAddress),
    ...nodePortFaults(document),
    ...(hidden === undefined ? [] : [hidden]),
    ...localFaults(document),
  ]
}

function bitFaults({ mode, iptables, nftables }: ProxyConfigurationDocument): string[] {
  const outside = (path: string, bit: number) => (bit < 0 || bit > 31 ? [invalid(`${path}.MasqueradeBit`, bit, 'must be within the range [0, 31]')] : [])
  return [
    ...outside('KubeProxyIPTablesConfiguration', iptables.masqueradeBit),
    ...(mode === 'nftables' ? outside('KubeProxyNFTablesConfiguration', nftables.masqueradeBit) : []),
  ]
}

function conntrackFaults({ conntrack }: ProxyConfigurationDocument): string[] {
  const path = 'KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration'
  const values: readonly [string, unknown, number][] = [
    ['MaxPerCore', conntrack.maxPerCore, conntrack.maxPerCore],
    ['Min', conntrack.min, conntrack.min],
    ['TCPEstablishedTimeout', conntrack.tcpEstablishedTimeout, ms(conntrack.tcpEstablishedTimeout)],
    ['TCPCloseWaitTimeout', conntrack.tcpCloseWaitTimeout, ms(conntrack.tcpCloseWaitTimeout)],
    ['UDPTimeout', conntrack.udpTimeout, ms(conntrack.udpTimeout)],
    ['UDPStreamTimeout', conntrack.udpStreamTimeout, ms(conntrack.udpStreamTimeout)],
  ]
  return values.flatMap(([name, shown, value]) => (value < 0 ? [invalid(`${path}.${name}`, shown, 'must be greater than or equal to 0')] : []))
}

function periodFaults(document: ProxyConfigurationDocument): string[] {
  const { syncPeriod, minSyncPeriod } = periodsOf(document)
  const { configSyncPeriod } = document
  return [
    ...(ms(configSyncPeriod) <= 0 ? [invalid('ConfigSyncPeriod', configSyncPeriod, 'must be greater than 0')] : []),
    ...(ms(syncPeriod) <= 0 ? [invalid('SyncPeriod', syncPeriod, 'must be greater than 0')] : []),
    ...(ms(minSyncPeriod) < 0 ? [invalid('MinSyncPeriod', minSyncPeriod, 'must be greater than or equal to 0')] : []),
    ...(ms(minSyncPeriod) > ms(syncPeriod) ? [invalid('SyncPeriod', minSyncPeriod, `must be greater than or equal to ${root}.MinSyncPeriod`)] : []),
  ]
}

/** `1.2.3.4:80` and `[::1]:80`. */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | undefined {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):([^:]*)$/.exec(text) ?? []
  return port === undefined ? undefined : { host: bracketed ?? plain ?? '', port }
}

function hostPortFaults(name: string, text: string): string[] {
  if (text === '') return []
  const split = splitHostPort(text)
  if (!split) return [invalid(name, text, 'must be IP:port')]
  const port = Number(split.port)
  return [
    ...(parseIp(split.host) ? [] : [invalid(name, split.host, 'must be a valid IP')]),
    ...(/^\d+$/.test(split.port) && port >= 1 && port <= 65_535 ? [] : [invalid(name, split.port, 'must be a valid port')]),
  ]
}

function nodePortFaults({ nodePortAddresses }: ProxyConfigurationDocument): string[] {
  const given = nodePortAddresses ?? []
  const at = given.indexOf(primaryAddresses)
  const checked = at < 0 ? given : given.slice(0, at)
  return [
    ...checked.flatMap((range, i) => (parseCidr(range) ? [] : [invalid(`NodePortAddresses[${i}]`, range, 'must be a valid CIDR')])),
    ...(at >= 0 && given.length > 1 ? [invalid(`NodePortAddresses[${at}]`, primaryAddresses, "can't use both 'primary' and CIDRs")] : []),
  ]
}

function localFaults({ detectLocalMode, detectLocal, clusterCIDR }: ProxyConfigurationDocument): string[] {
  const path = 'DetectLocalConfiguration'
  if (!localModes.includes(detectLocalMode)) {
    return [`${root}.DetectLocalMode: Unsupported value: "${detectLocalMode}": supported values: ${localModes.map((one) => `"${one}"`).join(', ')}`]
  }
  if (detectLocalMode === 'BridgeInterface') return detectLocal.bridgeInterface === '' ? [invalid(`${path}.InterfaceName`, '', 'must not be empty')] : []
  if (detectLocalMode === 'InterfaceNamePrefix')
    return detectLocal.interfaceNamePrefix === '' ? [invalid(`${path}.InterfacePrefix`, '', 'must not be empty')] : []
  const ranges = clusterCIDR === '' ? [] : clusterCIDR.split(',')
  const pair = 'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]'
  if (detectLocalMode === 'NodeCIDR') return []
  const wrong = ranges.flatMap((range, i) =>
    parseCidr(range) ? [] : [invalid(`${path}.ClusterCIDRs[${i}]`, range, 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)')],
  )
  const isPair = ranges.length < 2 || (ranges.length === 2 && isIpv6(ranges[0] ?? '') !== isIpv6(ranges[1] ?? ''))
  return wrong.length === 0 && !isPair ? [invalid(`${path}.ClusterCIDRs`, ranges, pair)] : wrong
}

/** Valid settings that this proxy cannot follow, by name with the reason. */
export function unsupportedSettings(document: ProxyConfigurationDocument): string[] {
  const { mode, iptables, nftables, ipvs, detectLocalMode, nodePortAddresses } = document
  const ofIpvs: readonly [boolean, string][] = [
    [!['', 'rr'].includes(ipvs.scheduler), 'ipvs.scheduler (--ipvs-scheduler) is not supported: the scheduler is rr'],
    [(ipvs.excludeCIDRs ?? []).length > 0, 'ipvs.excludeCIDRs (--ipvs-exclude-cidrs) is not supported: the proxy owns all virtual servers of the host'],
    [ipvs.strictARP, 'ipvs.strictARP (--ipvs-strict-arp) is not supported: set net.ipv4.conf.all.arp_ignore=1 and arp_announce=2 with sysctl'],
    ...(['tcpTimeout', 'tcpFinTimeout', 'udpTimeout'] as const).map((name): [boolean, string] => [
      ms(ipvs[name]) > 0,
      `ipvs.${name} is not supported: set the timeouts with ipvsadm --set`,
    ]),
  ]
  const all: readonly [boolean, string][] = [
    [
      (mode === 'nftables' ? nftables : iptables).masqueradeBit !== 14,
      `${mode === 'nftables' ? 'nftables' : 'iptables'}.masqueradeBit (--iptables-masquerade-bit) is not supported: bit 14 marks packets to masquerade`,
    ],
    [
      mode !== 'nftables' && mode !== 'ipvs' && !iptables.localhostNodePorts,
      'iptables.localhostNodePorts: false (--iptables-localhost-nodeports) is not supported: use nodePortAddresses without the loopback range, or the mode nftables',
    ],
    [
      detectLocalMode === 'BridgeInterface' || detectLocalMode === 'InterfaceNamePrefix',
      `detectLocalMode ${detectLocalMode} (--detect-local-mode) is not supported: pods are recognized by their ranges; use ClusterCIDR or NodeCIDR`,
    ],
    [
      mode === 'userspace' && (nodePortAddresses ?? []).length > 0,
      'nodePortAddresses (--nodeport-addresses) is not supported in the mode userspace: it listens on every address',
    ],
    ...(mode === 'ipvs' ? ofIpvs : []),
  ]
  return all.flatMap(([applies, why]) => (applies ? [why] : []))
}
