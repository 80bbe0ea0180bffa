/**
 * The flags of kube-proxy (L5), its configuration file, and what both come to: with a file, the flags of the same meaning are ignored, as upstream.
 * Upstream: cmd/kube-proxy/app/options.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { defaultDocument, type GivenDocument, mergeDocuments, type ProxyConfigurationDocument, readDocument } from '#proxy/configuration/document'
import { unsupportedSettings, validateDocument } from '#proxy/configuration/validate'
import { primaryAddresses } from '#proxy/ownNode'
import { decimal, type Flag, type Flags, flag, list, switches, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { usable } from '../../apiserver/options/namedFiles.ts'
import { type OptionContext, optionGroup } from '../../apiserver/options/optionGroup.ts'
import { optional } from '../options/leaderElection.ts'

function span(usage: string): Flag<string> {
  const parse = (given: string) => {
    if (parseDuration(given) === undefined) throw new Error('expected a duration such as 1m30s')
    return given
  }
  return { ...text(usage), type: 'duration', parse }
}

/** Flags that say the same as a field of the file: the flag, and the field's path. */
const ofFields: Readonly<Record<string, readonly [Flag<unknown>, string]>> = {
  'bind-address': [text("The node's primary address, whatever its Node object says"), 'bindAddress'],
  'bind-address-hard-fail': [flag('End when a port cannot be bound'), 'bindAddressHardFail'],
  'cluster-cidr': [text('The range of pods, or one of each family with a comma between'), 'clusterCIDR'],
  'config-sync-period': [span('Accepted, without effect: caches follow their watches'), 'configSyncPeriod'],
  'conntrack-max-per-core': [whole('The most tracked connections for each processor; 0: as the host has it', 32_768), 'conntrack.maxPerCore'],
  'conntrack-min': [whole('The least number of connections to track', 131_072), 'conntrack.min'],
  'conntrack-tcp-be-liberal': [flag('Packets of TCP outside the window are not INVALID'), 'conntrack.tcpBeLiberal'],
  'conntrack-tcp-timeout-close-wait': [span('How long a half-closed TCP connection is tracked'), 'conntrack.tcpCloseWaitTimeout'],
  'conntrack-tcp-timeout-established': [span('How long an idle TCP connection is tracked'), 'conntrack.tcpEstablishedTimeout'],
  'conntrack-udp-timeout': [span('How long a UDP flow without an answer is tracked'), 'conntrack.udpTimeout'],
  'conntrack-udp-timeout-stream': [span('How long a UDP flow with answers is tracked'), 'conntrack.udpStreamTimeout'],
  'detect-local-mode': [text('How pods are recognized: ClusterCIDR or NodeCIDR'), 'detectLocalMode'],
  'feature-gates': [switches('name=true|false for features'), 'featureGates'],
  'healthz-bind-address': [text('Where health is served; empty: nowhere', '0.0.0.0:10256'), 'healthzBindAddress'],
  'iptables-localhost-nodeports': [flag('Node ports answer on 127.0.0.1 in the mode iptables', true), 'iptables.localhostNodePorts'],
  'iptables-masquerade-bit': [whole('The bit of the mark of packets to masquerade: 14', 14), 'iptables.masqueradeBit'],
  'iptables-min-sync-period': [span('The least time between two changes of the rules'), 'iptables.minSyncPeriod'],
  'iptables-sync-period': [span('Half the time that a change may wait before the proxy is unhealthy'), 'iptables.syncPeriod'],
  'ipvs-exclude-cidrs': [list('Not supported'), 'ipvs.excludeCIDRs'],
  'ipvs-min-sync-period': [span('The least time between two changes of the virtual servers'), 'ipvs.minSyncPeriod'],
  'ipvs-scheduler': [text('The scheduler of virtual servers: rr'), 'ipvs.scheduler'],
  'ipvs-strict-arp': [flag('Not supported'), 'ipvs.strictARP'],
  'ipvs-sync-period': [span('Half the time that a change may wait before the proxy is unhealthy'), 'ipvs.syncPeriod'],
  'ipvs-tcp-timeout': [span('Not supported'), 'ipvs.tcpTimeout'],
  'ipvs-tcpfin-timeout': [span('Not supported'), 'ipvs.tcpFinTimeout'],
  'ipvs-udp-timeout': [span('Not supported'), 'ipvs.udpTimeout'],
  'kube-api-burst': [whole('How many calls may go at once beyond the rate', 10), 'clientConnection.burst'],
  'kube-api-content-type': [text('Accepted, without effect: calls are made in JSON'), 'clientConnection.contentType'],
  'kube-api-qps': [decimal('How many calls a second the client makes', 5), 'clientConnection.qps'],
  kubeconfig: [text("Where the API server is and how to log in; empty: in a pod, its service account's"), 'clientConnection.kubeconfig'],
  'masquerade-all': [flag('Masquerade all traffic to cluster IPs'), 'iptables.masqueradeAll'],
  'metrics-bind-address': [text('Where metrics are served; empty: nowhere', '127.0.0.1:10249'), 'metricsBindAddress'],
  'nodeport-addresses': [list('Ranges of addresses that node ports answer on, or primary'), 'nodePortAddresses'],
  'oom-score-adj': [whole('How likely the kernel ends this process when memory is short', -999), 'oomScoreAdj'],
  'pod-bridge-interface': [text('For --detect-local-mode BridgeInterface, which is not supported'), 'detectLocal.bridgeInterface'],
  'pod-interface-name-prefix': [text('For --detect-local-mode InterfaceNamePrefix, which is not supported'), 'detectLocal.interfaceNamePrefix'],
  profiling: [flag('Serve profiles of this process below /debug/pprof'), 'enableProfiling'],
  'proxy-mode': [text('iptables, nftables, ipvs or userspace', 'iptables'), 'mode'],
  'show-hidden-metrics-for-version': [text('The previous version, whose hidden metrics are shown'), 'showHiddenMetricsForVersion'],
}

const ignored = 'Accepted, without effect'
const ignoredFlags = {
  'boot-id-file': text(ignored),
  'log-flush-frequency': span(ignored),
  'log-json-info-buffer-size': text(ignored),
  'log-json-split-stream': flag(ignored),
  'log-text-info-buffer-size': text(ignored),
  'log-text-split-stream': flag(ignored),
  'machine-id-file': text(ignored),
  vmodule: text(ignored),
} as const

const withoutEffect = ['config-sync-period', 'kube-api-content-type']

export interface ProxyFlags {
  readonly document: ProxyConfigurationDocument
  /** Empty: the machine's name, or that of the document. */
  readonly hostnameOverride: string
  readonly master: string
  /** Empty: there is no file. */
  readonly configFile: string
  readonly writeConfigTo: string
  readonly cleanup: boolean
  readonly initOnly: boolean
  /** Undefined: as the document has it. */
  readonly verbosity: number | undefined
  readonly loggingFormat: 'text' | 'json' | undefined
  /** False: the flags disable the port. */
  readonly servesHealth: boolean
  readonly servesMetrics: boolean
  readonly warnings: readonly string[]
}

const optionals: Flags = Object.fromEntries(Object.entries(ofFields).map(([name, [one]]) => [name, optional(one) as Flag<unknown>]))

const ownFlags = {
  cleanup: flag('Remove the rules of every mode from this host, then end'),
  config: text('A file of kind KubeProxyConfiguration; the flags of the same meaning are ignored then'),
  'healthz-port': optional(whole('Deprecated, use --healthz-bind-address; 0: health is not served', 10_256)),
  'hostname-override': text("The node's name; empty: the machine's"),
  'init-only': flag('Do what needs full rights on this host, then end'),
  'logging-format': optional(text('text or json')),
  master: text("The API server's address, whatever the kubeconfig says"),
  'metrics-port': optional(whole('Deprecated, use --metrics-bind-address; 0: metrics are not served', 10_249)),
  v: optional(whole('How much the log says', 2)),
  'write-config-to': text('Write the configuration with its defaults to this file, then end'),
} as const

export const proxyFlags = optionGroup({
  name: 'Proxy',
  flags: { ...optionals, ...ownFlags, ...ignoredFlags },
  async settings(given, context): Promise<ProxyFlags> {
    const values = given as unknown as OwnValues & Readonly<Record<string, unknown>>
    const fromFlags = flagDocument(values)
    const file = values.config === '' ? undefined : await fileDocument(values.config, context)
    const document = platformDefaults(defaultDocument(file?.given ?? fromFlags))
    const hostnameOverride = values['hostname-override'].trim().toLowerCase()
    const format = values['logging-format']
    const faults = [
      ...(['text', 'json', undefined].includes(format) ? [] : [`--logging-format "${format}" must be "text" or "json"`]),
      ...(values['hostname-override'] !== '' && hostnameOverride === '' ? ['empty hostname-override is invalid'] : []),
      ...validateDocument(document),
      ...unsupportedSettings(document),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {
      ...{ document, hostnameOverride, master: values.master, configFile: values.config, writeConfigTo: values['write-config-to'] },
      ...{ cleanup: values.cleanup, initOnly: values['init-only'], verbosity: values.v, loggingFormat: format as ProxyFlags['loggingFormat'] },
      servesHealth: file !== undefined || (values['healthz-port'] !== 0 && values['healthz-bind-address'] !== ''),
      servesMetrics: file !== undefined || (values['metrics-port'] !== 0 && values['metrics-bind-address'] !== ''),
      warnings: [...(file?.warnings ?? []), ...flagWarnings(values, file !== undefined, context)],
    }
  },
})

interface OwnValues {
  readonly cleanup: boolean
  readonly config: string
  readonly 'healthz-port': number | undefined
  readonly 'hostname-override': string
  readonly 'init-only': boolean
  readonly 'logging-format': string | undefined
  readonly master: string
  readonly 'metrics-port': number | undefined
  readonly v: number | undefined
  readonly 'write-config-to': string
}

async function fileDocument(name: string, context: OptionContext) {
  const content = await context
    .file(name)
    .read()
    .catch((error: Error) => {
      throw new UsageError([`--config: ${error.message}`])
    })
  return usable(() => readDocument(content))
}

/** The document that flags come to. */
function flagDocument(values: Readonly<Record<string, unknown>>): GivenDocument {
  const parts = Object.entries(ofFields).flatMap(([name, [, path]]) => (values[name] === undefined ? [] : [at(path, values[name])]))
  // The flag holds for every mode.
  const all = values['masquerade-all'] === true ? [at('nftables.masqueradeAll', true)] : []
  const bit = values['iptables-masquerade-bit'] === undefined ? [] : [at('nftables.masqueradeBit', values['iptables-masquerade-bit'])]
  const ofNftables = (['sync', 'min-sync'] as const).flatMap((name) => {
    const value = values[`iptables-${name}-period`]
    return value === undefined ? [] : [at(name === 'sync' ? 'nftables.syncPeriod' : 'nftables.minSyncPeriod', value)]
  })
  return [...parts, ...all, ...bit, ...ofNftables].reduce(mergeDocuments, withPorts(values))
}

/** The deprecated flags give a port to an address that has none; without an address, to the default one. */
function withPorts(values: Readonly<Record<string, unknown>>): GivenDocument {
  const port = (name: string) => values[name] as number | undefined
  return {
    ...(port('healthz-port') ? { healthzBindAddress: `0.0.0.0:${port('healthz-port')}` } : {}),
    ...(port('metrics-port') ? { metricsBindAddress: `127.0.0.1:${port('metrics-port')}` } : {}),
  }
}

function at(path: string, value: unknown): GivenDocument {
  return path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as GivenDocument
}

function platformDefaults(document: ProxyConfigurationDocument): ProxyConfigurationDocument {
  const mode = document.mode === '' ? 'iptables' : document.mode
  const isUnset = (document.nodePortAddresses ?? []).length === 0
  return {
    ...document,
    mode,
    nodePortAddresses: mode === 'nftables' && isUnset ? [primaryAddresses] : document.nodePortAddresses,
    detectLocalMode: document.detectLocalMode === '' ? 'ClusterCIDR' : document.detectLocalMode,
  }
}

function flagWarnings(values: Readonly<Record<string, unknown>>, hasFile: boolean, context: OptionContext): string[] {
  const isGiven = (name: string) => context.isGiven?.(name) ?? values[name] !== undefined
  const deprecated = ['healthz', 'metrics'].filter((name) => isGiven(`${name}-port`))
  return [
    ...(hasFile ? Object.keys(ofFields).filter(isGiven) : []).map((name) => `--${name} is ignored: --config names a file`),
    ...[...Object.keys(ignoredFlags), ...(hasFile ? [] : withoutEffect)].filter(isGiven).map((name) => `--${name} has no effect in this proxy`),
    ...deprecated.map((name) => `Flag --${name}-port has been deprecated, use --${name}-bind-address`),
  ]
}
