/**
 * Starts the agent of each real node inside the node's namespaces and keeps it running (L5). An agent is a child of its node's process 1 and ends when its
 * standard input, which is a socket of ours, closes: so none outlives the server; the containers do.
 */
import path from 'node:path'
import type { Component } from '#base/component'
import { writeFileAtomic } from '#host/files'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { nodeCgroup, type RealNode } from '../localCluster/clusterState.ts'
import { hostResolvConf } from '../localCluster/hostResolver.ts'
import { ensureClientCertificate, ensureNodeCertificates } from '../pki/pki.ts'
import { addressesOf, gatewaysOf, nodeNetwork, serverUrlOf } from '../vnode/clusterNetwork.ts'
import { type AgentConfig, dnsUser, policyUser, proxyUser } from './agentConfig.ts'
import type { AgentsOptions } from './agentsOptions.ts'
import { startNodeProgram } from './nodeProgram.ts'
import { type SupervisedProcess, superviseProcess } from './superviseProcess.ts'
import type { VnodeChild } from './vnodeChild.ts'

const graceMs = 5000
/** The word that makes this program an agent. */
const agentRole = 'node-agent'

const resolverEveryMs = 5000

/** Writes renewed certificates into every agent's configuration; an agent takes them up without a restart. */
export async function renewAgentCertificates(options: AgentsOptions): Promise<void> {
  for (const node of options.state.nodes) await writeAgentConfig(options, node)
}

/** Gives the agents the host's name servers when those change, such as with a VPN. */
export function createResolverWatch(options: AgentsOptions): Component {
  const { clock, log } = options.tools
  return {
    name: 'name servers of the host',
    async run(signal) {
      let known = await hostResolvConf()
      while (!signal.aborted) {
        await clock.sleep(resolverEveryMs, signal).catch(() => {})
        try {
          const text = await hostResolvConf()
          if (text === known) continue
          await renewAgentCertificates(options)
          known = text
          log.info('The nodes take up the name servers of the host')
        } catch (error) {
          log.error(error, 'The nodes could not be given the name servers of the host')
        }
      }
    },
  }
}

/** One component per real node. */
export function createAgents(options: AgentsOptions): Component[] {
  return options.state.nodes.map((node) => ({ name: `agent of ${node.name}`, run: (signal) => superviseAgent(options, node, signal) }))
}

async function superviseAgent(options: AgentsOptions, node: RealNode, signal: AbortSignal): Promise<void> {
  const { tools, processes } = options
  await writeAgentConfig(options, node)
  const agent: SupervisedProcess<VnodeChild> = {
    start: () => startNodeProgram(options, node, { word: agentRole, args: [agentRole, '--config', '/mnt/node/agent.json'], graceMs }, 'agent'),
    onMissing: () => tools.log.warn('The node does not run', { node: node.name }),
    onStarted: async ({ pid }) => processes.set(node.name, { role: 'node', pid, node: node.name }),
    onEnded: async (_, stopped) => {
      if (!stopped) tools.log.warn('A node agent ended, starting it again', { node: node.name })
      await processes.set(node.name, undefined)
    },
    end: (child, ended) => child.end(ended, graceMs, tools.clock),
  }
  await superviseProcess(agent, tools, signal)
}

async function writeAgentConfig(options: AgentsOptions, node: RealNode): Promise<void> {
  const { state, paths, ca, tools } = options
  if (!state.network) throw new Error('a cluster with real nodes has a network')
  const nowMs = tools.clock.now()
  const { clusterCidr, serviceCidr, clusterDns, clusterDomain } = addressPlanOf(state)
  const addresses = addressesOf(nodeNetwork(state.network, state.id, node.index))
  const [nodeAddress = '', nodeAddressIpv6] = addresses
  const dir = path.join(paths.node(node.name), 'pki')
  const certificates = await ensureNodeCertificates(dir, ca, node.name, [...addresses, node.name], nowMs)
  const proxy = await ensureClientCertificate(dir, ca, 'kube-proxy', proxyUser, ['system:node-proxier'], nowMs)
  const dns = await ensureClientCertificate(dir, ca, 'cluster-dns', dnsUser, [], nowMs)
  const policy = await ensureClientCertificate(dir, ca, 'network-policy', policyUser, [], nowMs)
  const config: AgentConfig = {
    nodeName: node.name,
    nodeAddress,
    nodeAddressIpv6,
    server: serverUrlOf(state.network, state.port),
    ca: ca.cert,
    kubelet: {
      clientCert: certificates.client.cert,
      clientKey: certificates.client.key,
      servingCert: certificates.serving.cert,
      servingKey: certificates.serving.key,
    },
    proxy: { clientCert: proxy.cert, clientKey: proxy.key },
    dns: { clientCert: dns.cert, clientKey: dns.key },
    policy: { clientCert: policy.cert, clientKey: policy.key },
    cgroupRoot: `/${nodeCgroup(state, node)}`,
    clusterCidr,
    serviceCidr,
    proxyMode: state.proxyMode,
    podNetwork: state.podNetwork,
    clusterDns,
    clusterDomain,
    hostAddresses: gatewaysOf(state.network),
    resolvConf: await hostResolvConf(),
    featureGates: options.featureGates,
  }
  await writeFileAtomic(path.join(paths.node(node.name), 'agent.json'), JSON.stringify(config), 0o600)
}
