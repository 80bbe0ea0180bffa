/**
 * The agent of one real node (L5), running inside the node's namespaces: kubelet on the node's containerd, service proxy, cluster DNS and the
 * pod network, each with its own identity towards the API.
 */
import fs from 'node:fs/promises'
import type { Component } from '#base/component'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { createClusterDns } from '#dns/clusterDns'
import { upstreamServers } from '#dns/plugins/forward'
import { connectCri } from '#grpc/criClient'
import { createConntrack } from '#host/conntrack'
import { createExec } from '#host/exec'
import { createKubeletHost } from '#kubelet/host'
import { importImage } from '#kubelet/images/importImage'
import { pauseImage as buildPauseImage } from '#kubelet/images/pauseImage'
import { createKubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { apiAuth } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createNetworkAgent } from '#network/networkAgent'
import { createProxy } from '#proxy/proxy'
import { nodePaths, pauseImage } from '../vnode/files.ts'
import type { AgentConfig } from './agentConfig.ts'
import { type ProcessTools, processTools, runTogether } from './processTools.ts'

const dnsPort = 53

export async function runNodeAgent(configFile: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const config = JSON.parse(await fs.readFile(configFile, 'utf8')) as AgentConfig
  const tools = processTools(config.nodeName, verbosity)
  const components = [...(await kubelet(config, tools)), ...network(config, tools)]
  await runTogether(components, tools, signal)
}

/** A client with its own certificate, and informers over it. */
function access(config: AgentConfig, identity: { clientCert: string; clientKey: string }, userAgent: string, tools: ProcessTools) {
  const transport = createHttpTransport({
    server: config.server,
    tls: { ca: config.ca, cert: identity.clientCert, key: identity.clientKey },
    userAgent,
    clock: tools.clock,
  })
  const client = createClient(transport)
  return { client, informers: createSharedInformerFactory(client, tools) }
}

async function kubelet(config: AgentConfig, tools: ProcessTools): Promise<Component[]> {
  const exec = createExec()
  const images = await exec.run('ctr', ['--address', nodePaths.containerdSocket, '--namespace', 'k8s.io', 'images', 'ls', '-q', `name==${pauseImage}`])
  if (images.stdout.trim() === '') await importImage({ exec, socket: nodePaths.containerdSocket }, buildPauseImage(pauseImage))
  const { client } = access(config, config.kubelet, 'kubelet', tools)
  const log = tools.log.with('kubelet')
  const kubelet = createKubelet(
    {
      client,
      ...tools,
      log,
      runtime: createContainerdRuntime({ client: connectCri(nodePaths.containerdSocket), clock: tools.clock }),
      host: await createKubeletHost(),
    },
    {
      nodeName: config.nodeName,
      nodeIPs: [config.nodeAddress],
      cgroupRoot: config.cgroupRoot,
      clusterDNS: [config.clusterDns],
      clusterDomain: config.clusterDomain,
      resolvConf: await fs.readFile('/etc/resolv.conf', 'utf8').catch(() => ''),
      rootDirectory: nodePaths.kubelet,
      podLogsDirectory: nodePaths.podLogs,
      // The node shares the host's disk: how full that is says nothing about the pods here, and nobody else can make room.
      evictionHard: { 'memory.available': '100Mi' },
      imageGCHighThresholdPercent: 100,
    },
  )
  const server = createKubeletServer(
    { view: kubelet.view, auth: apiAuth(client, tools.clock, config.nodeName), clock: tools.clock, log, metricsText: () => tools.metrics.render() },
    { port: kubelet.view.config.port, cert: config.kubelet.servingCert, key: config.kubelet.servingKey, clientCa: config.ca },
  )
  return [kubelet, server]
}

function network(config: AgentConfig, tools: ProcessTools): Component[] {
  const exec = createExec()
  const proxy = access(config, config.proxy, 'kube-proxy', tools)
  const dns = access(config, config.dns, 'cluster-dns', tools)
  const { nodeName, nodeAddress, clusterCidr, serviceCidr } = config
  return [
    createProxy(
      { informers: proxy.informers, ...tools, log: tools.log.with('kube-proxy'), exec, conntrack: createConntrack(exec) },
      { nodeName, clusterCidr, serviceCidr, mode: 'auto' },
    ),
    createNetworkAgent({ informers: proxy.informers, ...tools, log: tools.log.with('network'), exec }, { nodeName, cniConfigDir: nodePaths.cniConfig }),
    createClusterDns(
      {
        ...dns,
        ...tools,
        log: tools.log.with('dns'),
        upstreams: async () => upstreamServers(await fs.readFile('/etc/resolv.conf', 'utf8').catch(() => '')),
      },
      { nodeName, nodeAddress, clusterIp: config.clusterDns, zone: config.clusterDomain, port: dnsPort },
    ),
    { name: 'proxy informers', run: (signal) => proxy.informers.run(signal) },
    { name: 'dns informers', run: (signal) => dns.informers.run(signal) },
  ]
}
