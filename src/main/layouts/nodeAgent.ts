/**
 * The agent of one real node (L5), running inside the node's namespaces: kubelet on the node's containerd, service proxy, cluster DNS, network
 * policies and the pod network, each with its own identity towards the API.
 */
import fs from 'node:fs/promises'
import { isIpv6 } from '#api/machinery/ip'
import { withoutNils } from '#api/schema/nils'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Metrics } from '#base/metrics'
import { createSharedInformerFactory, type SharedInformerFactoryOptions } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { createEventRecorder } from '#client/eventRecorder'
import { createHttpTransport } from '#client/httpTransport'
import { meteredTransport } from '#client/restMetrics'
import { createClusterDns } from '#dns/clusterDns'
import { upstreamServers } from '#dns/plugins/forward'
import { connectCri } from '#grpc/criClient'
import { createConntrack } from '#host/conntrack'
import { createExec } from '#host/exec'
import { createCallLog } from '#kubelet/core/callLog'
import type { KubeletDeps } from '#kubelet/core/context'
import { createKubeletHost } from '#kubelet/core/host'
import type { NodeNetwork } from '#kubelet/core/nodeNetwork'
import { importImage } from '#kubelet/images/importImage'
import { pauseImage as buildPauseImage } from '#kubelet/images/pauseImage'
import { createKubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { recordedCri } from '#kubelet/runtime/containerd/recordedCri'
import { traceRuntime } from '#kubelet/runtime/tracedRuntime'
import { apiAuth } from '#kubelet/server/auth'
import { createKubeletServer, type KubeletServerTls } from '#kubelet/server/kubeletServer'
import { addressDirectory, releaseUnfinished } from '#network/cni/addresses'
import { createCallNotes } from '#network/cni/callNotes'
import { installRecorder } from '#network/cni/recorder'
import { createNetworkAgent } from '#network/networkAgent'
import { slimObject } from '#network/policy/changes'
import { createPolicyAgent, type PolicyAgent } from '#network/policy/policyAgent'
import { ProxyHealth } from '#proxy/health'
import { createProxy, noProxyMode, type ProxyConfig, type ServiceProxy } from '#proxy/proxy'
import { EventBook } from '#trace/eventBook'
import { TraceClock } from '#trace/traceClock'
import { createConfigFile } from '../apiserver/configFile.ts'
import { networkProbes } from '../component/kubelet/networkProbe.ts'
import { kubeletPages } from '../component/kubelet/pages.ts'
import { createHealthPort, createMetricsPort, defaultAddresses } from '../component/kubeProxy/proxyPorts.ts'
import { componentFamilies, createComponentMetrics } from '../componentMetrics.ts'
import { live } from '../pki/livePki.ts'
import { createRealClock } from '../realClock.ts'
import { nodePaths, pauseImage } from '../vnode/files.ts'
import type { AgentConfig } from './agentConfig.ts'
import { ownProgram, type ProcessTools, processTools, runTogether } from './processTools.ts'

const dnsPort = 53

export async function runNodeAgent(configFile: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const file = createConfigFile(configFile, createRealClock())
  const config = JSON.parse(await file.read()) as AgentConfig
  const tools = processTools(config.nodeName, { verbosity })
  const renewals: Renewals = []
  const policies = networkPolicies(config, tools, renewals)
  const node = network(config, tools, renewals)
  const components = [
    ...(await kubelet(config, tools, renewals, { podNetwork: policies.agent, nodeNetwork: node.shown })),
    ...node.components,
    ...policies.components,
  ]
  file.follow((text) => {
    const before = certificatesOf(config)
    // Only the certificates and the host's name servers ever change while an agent runs.
    Object.assign(config, JSON.parse(text) as AgentConfig)
    if (certificatesOf(config) === before) return
    tools.log.info('Took up renewed certificates')
    for (const apply of renewals) apply()
  }, signal)
  await runTogether(components, tools, signal)
}

function certificatesOf({ ca, kubelet, proxy, dns, policy }: AgentConfig): string {
  return JSON.stringify([ca, kubelet, proxy, dns, policy])
}

/** Functions to call when the configuration holds other certificates than before. */
type Renewals = (() => void)[]

interface Access {
  readonly tools: ProcessTools
  readonly renewals: Renewals
}

/** A client with its own certificate, and informers over it. A renewed certificate closes the connections, as in client-go; the next requests open new ones. */
function access(
  config: AgentConfig,
  name: 'kubelet' | 'proxy' | 'dns' | 'policy',
  userAgent: string,
  { tools, renewals }: Access,
  options?: SharedInformerFactoryOptions,
  metrics?: Metrics,
) {
  const tls = live(() => ({ ca: config.ca, cert: config[name].clientCert, key: config[name].clientKey }))
  const transport = createHttpTransport({
    server: config.server,
    tls,
    userAgent,
    tidy: withoutNils,
    clock: tools.clock,
  })
  renewals.push(() => void transport.close())
  const client = createClient(metrics ? meteredTransport(transport, metrics, tools.clock, new URL(config.server).host) : transport)
  return { client, informers: createSharedInformerFactory(client, tools, options) }
}

/** Keeps the newest events of all pods: a note costs a thousandth of the call of containerd that it is about. */
function podTrace(clock: Clock): EventBook {
  return new EventBook(new TraceClock(clock), 512 * 1024)
}

async function kubelet(
  config: AgentConfig,
  tools: ProcessTools,
  renewals: Renewals,
  networks: Pick<KubeletDeps, 'podNetwork' | 'nodeNetwork'>,
): Promise<Component[]> {
  const exec = createExec()
  const images = await exec.run('ctr', ['--address', nodePaths.containerdSocket, '--namespace', 'k8s.io', 'images', 'ls', '-q', `name==${pauseImage}`])
  if (images.stdout.trim() === '') await importImage({ exec, socket: nodePaths.containerdSocket }, buildPauseImage(pauseImage))
  const { client } = access(config, 'kubelet', 'kubelet', { tools, renewals })
  const log = tools.log.with('kubelet')
  const calls = createCallLog(tools.clock)
  const cniCalls = createCallNotes({ clock: tools.clock, log: tools.log.with('cni'), take: calls.add }, nodePaths.cniCalls)
  const trace = podTrace(tools.clock)
  const containerd = createContainerdRuntime({
    client: recordedCri(connectCri(nodePaths.containerdSocket), calls),
    clock: tools.clock,
    tool: { exec, socket: nodePaths.containerdSocket },
  })
  const kubelet = createKubelet(
    {
      client,
      ...tools,
      log,
      calls,
      trace,
      runtime: traceRuntime(containerd, trace, config.nodeName),
      host: await createKubeletHost(),
      ...networks,
    },
    {
      nodeName: config.nodeName,
      nodeIPs: [config.nodeAddress, ...(config.nodeAddressIpv6 ? [config.nodeAddressIpv6] : [])],
      cgroupRoot: config.cgroupRoot,
      clusterDNS: [config.clusterDns],
      clusterDomain: config.clusterDomain,
      featureGates: config.featureGates ?? {},
      resolvConf: await fs.readFile('/etc/resolv.conf', 'utf8').catch(() => ''),
      rootDirectory: nodePaths.kubelet,
      podLogsDirectory: nodePaths.podLogs,
      // The node shares the host's disk, which other programs fill: evicting pods would not make room.
      evictionHard: { 'memory.available': '100Mi' },
      imageGCHighThresholdPercent: 100,
    },
  )
  const server = createKubeletServer(
    {
      view: kubelet.view,
      auth: apiAuth(client, tools.clock, config.nodeName),
      clock: tools.clock,
      log,
      metrics: tools.metrics,
      metricFamilies: () => componentFamilies(tools.metrics),
      pages: kubeletPages({ clock: tools.clock, flags: {} }),
    },
    { port: kubelet.view.config.port, ...servingTls(config) },
  )
  renewals.push(() => server.setTls(servingTls(config)))
  return [kubelet, server, cniCalls]
}

function servingTls({ kubelet, ca }: AgentConfig): KubeletServerTls {
  return { cert: kubelet.servingCert, key: kubelet.servingKey, clientCa: ca }
}

function networkPolicies(
  config: AgentConfig,
  tools: ProcessTools,
  renewals: Renewals,
): { readonly agent: PolicyAgent; readonly components: readonly Component[] } {
  const { informers } = access(config, 'policy', 'network-policy', { tools, renewals }, { transform: slimObject })
  const deps = { informers, ...tools, log: tools.log.with('network-policy'), exec: createExec() }
  const agent = createPolicyAgent(deps, { nodeName: config.nodeName })
  return { agent, components: [agent, { name: 'network policy informers', run: (signal) => informers.run(signal) }] }
}

/** Twice upstream's default period of synchronization. */
const healthTimeoutMs = 60_000

interface ProxyPortsDeps extends Pick<ProcessTools, 'clock' | 'log' | 'metrics'> {
  readonly health: ProxyHealth
  readonly serviceProxy: ServiceProxy
}

/** Health for load balancers, and metrics on the loopback address, as upstream's by default. */
function proxyPorts(deps: ProxyPortsDeps, ofIpv6: boolean, configuration: ProxyConfig): readonly Component[] {
  const addresses = defaultAddresses(ofIpv6)
  const pages = { mode: deps.serviceProxy.mode, configuration, flags: {}, profiling: false }
  return [createHealthPort(deps, deps.health, addresses.health), createMetricsPort(deps, pages, addresses.metrics)]
}

function network(config: AgentConfig, tools: ProcessTools, renewals: Renewals): { readonly components: readonly Component[]; readonly shown: NodeNetwork } {
  const exec = createExec()
  // The kubelet's port shows other metrics.
  const metrics = createComponentMetrics()
  const proxy = access(config, 'proxy', 'kube-proxy', { tools, renewals }, {}, metrics)
  const dns = access(config, 'dns', 'cluster-dns', { tools, renewals })
  const { nodeName, nodeAddress, clusterCidr, serviceCidr, podNetwork: routeMode, proxyMode = 'auto' } = config
  const log = tools.log.with('kube-proxy')
  const dnsLog = tools.log.with('dns')
  const networkLog = tools.log.with('network')
  const events = createEventRecorder({ ...tools, client: proxy.client, log }, { component: 'kube-proxy', host: nodeName })
  const health = new ProxyHealth(tools.clock, healthTimeoutMs)
  const proxyConfig = { nodeName, clusterCidr, serviceCidr, mode: proxyMode }
  const serviceProxy = createProxy({ informers: proxy.informers, ...tools, metrics, log, exec, conntrack: createConntrack(exec), events, health }, proxyConfig)
  const ports = proxyMode === noProxyMode ? [] : proxyPorts({ ...tools, metrics, log, health, serviceProxy }, isIpv6(nodeAddress), proxyConfig)
  const agent = createNetworkAgent(
    {
      informers: proxy.informers,
      ...tools,
      log: networkLog,
      exec,
      events: createEventRecorder({ ...tools, client: proxy.client, log: networkLog }, { component: 'network-agent', host: nodeName }),
    },
    {
      nodeName,
      clusterCidr,
      routeMode,
      cniConfigDir: nodePaths.cniConfig,
      installPlugins: async () => {
        await releaseUnfinished(addressDirectory(nodePaths.cniState), tools.clock.now())
        const { installPlugins } = await import('#network/cni/install')
        return installPlugins([nodePaths.cniPlugins, nodePaths.packagedCniPlugins], ownProgram())
      },
      installRecorder: (network) => installRecorder(nodePaths.cniPlugins, nodePaths.cniCalls, network),
    },
  )
  const components = [
    serviceProxy,
    ...ports,
    agent,
    createClusterDns(
      {
        ...dns,
        ...tools,
        log: dnsLog,
        events: createEventRecorder({ ...tools, client: dns.client, log: dnsLog }, { component: 'cluster-dns', host: nodeName }),
        // The configuration is written again when the host gets other name servers.
        upstreams: async () => upstreamServers(config.resolvConf ?? (await fs.readFile('/etc/resolv.conf', 'utf8').catch(() => ''))),
      },
      { nodeName, nodeAddress, clusterIp: config.clusterDns, zone: config.clusterDomain, port: dnsPort, hostAddresses: config.hostAddresses ?? [] },
    ),
    { name: 'proxy informers', run: (signal: AbortSignal) => proxy.informers.run(signal) },
    { name: 'dns informers', run: (signal: AbortSignal) => dns.informers.run(signal) },
  ]
  const probe = networkProbes(exec, ownProgram())
  return { components, shown: { serviceRules: serviceProxy.serviceRules, routes: agent.routes, probe } }
}
