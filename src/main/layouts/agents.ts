/**
 * Starts the agent of each real node inside the node's namespaces and keeps it running (L5). An agent ends when the pipe to us closes, so none
 * outlives the server; the containers do.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Component } from '#base/component'
import { writeFileAtomic } from '#host/files'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { type ClusterPaths, type ClusterState, nodeCgroup, type RealNode } from '../localCluster/clusterState.ts'
import type { KeyPair } from '../pki/certificates.ts'
import { ensureClientCertificate, ensureNodeCertificates } from '../pki/pki.ts'
import { gatewayOf, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { enterVnode, vnodeProcess } from '../vnode/vnode.ts'
import { type AgentConfig, dnsUser, proxyUser } from './agentConfig.ts'
import type { ProcessList } from './processList.ts'
import type { ProcessTools } from './processTools.ts'
import { type SupervisedProcess, superviseProcess } from './superviseProcess.ts'

const graceMs = 5000

export interface AgentsOptions {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly ca: KeyPair
  /** Words that run this program. */
  readonly self: readonly string[]
  readonly verbosity: number
  readonly tools: ProcessTools
  readonly processes: ProcessList
}

/** Writes renewed certificates into every agent's configuration; an agent takes them up without a restart. */
export async function renewAgentCertificates(options: AgentsOptions): Promise<void> {
  for (const node of options.state.nodes) await writeAgentConfig(options, node)
}

/** One component per real node. */
export function createAgents(options: AgentsOptions): Component[] {
  return options.state.nodes.map((node) => ({ name: `agent of ${node.name}`, run: (signal) => superviseAgent(options, node, signal) }))
}

async function superviseAgent(options: AgentsOptions, node: RealNode, signal: AbortSignal): Promise<void> {
  const { tools, processes } = options
  await writeAgentConfig(options, node)
  const agent: SupervisedProcess = {
    start: () => startAgent(options, node),
    onMissing: () => tools.log.warn('The node does not run', { node: node.name }),
    onStarted: async (child) => processes.set(node.name, { role: 'node', pid: await forkedPid(child, options), node: node.name }),
    onEnded: async (child, stopped) => {
      if (!stopped) tools.log.warn('A node agent ended, starting it again', { node: node.name, code: child.exitCode, signal: child.signalCode })
      await processes.set(node.name, undefined)
    },
    end: (child, ended) => endAgent(child, ended, options),
  }
  await superviseProcess(agent, tools, signal)
}

async function writeAgentConfig(options: AgentsOptions, node: RealNode): Promise<void> {
  const { state, paths, ca, tools } = options
  if (!state.network) throw new Error('a cluster with real nodes has a network')
  const nowMs = tools.clock.now()
  const { clusterCidr, serviceCidr, clusterDns, clusterDomain } = addressPlanOf(state)
  const { address } = nodeNetwork(state.network, state.id, node.index)
  const dir = path.join(paths.node(node.name), 'pki')
  const own = await ensureNodeCertificates(dir, ca, node.name, [address, node.name], nowMs)
  const proxy = await ensureClientCertificate(dir, ca, 'kube-proxy', proxyUser, ['system:node-proxier'], nowMs)
  const dns = await ensureClientCertificate(dir, ca, 'cluster-dns', dnsUser, [], nowMs)
  const config: AgentConfig = {
    nodeName: node.name,
    nodeAddress: address,
    server: `https://${gatewayOf(state.network)}:${state.port}`,
    ca: ca.cert,
    kubelet: { clientCert: own.client.cert, clientKey: own.client.key, servingCert: own.serving.cert, servingKey: own.serving.key },
    proxy: { clientCert: proxy.cert, clientKey: proxy.key },
    dns: { clientCert: dns.cert, clientKey: dns.key },
    cgroupRoot: `/${nodeCgroup(state, node)}`,
    clusterCidr,
    serviceCidr,
    clusterDns,
    clusterDomain,
  }
  await writeFileAtomic(path.join(paths.node(node.name), 'agent.json'), JSON.stringify(config), 0o600)
}

/** Undefined when the node itself does not run. */
async function startAgent(options: AgentsOptions, node: RealNode): Promise<ChildProcess | undefined> {
  const dir = options.paths.node(node.name)
  const init = await vnodeProcess(dir)
  if (!init) return undefined
  const log = await fs.open(path.join(dir, 'agent.log'), 'a', 0o600)
  try {
    await log.chmod(0o600)
    const [file = '', ...args] = [...enterVnode(init), ...options.self, 'node-agent', '--config', '/mnt/node/agent.json', '--v', String(options.verbosity)]
    const child = spawn(file, args, { stdio: ['pipe', log.fd, log.fd], cwd: '/' })
    await once(child, 'spawn')
    return child
  } finally {
    await log.close()
  }
}

async function endAgent(child: ChildProcess, ended: Promise<unknown>, options: AgentsOptions): Promise<void> {
  const pid = await agentPid(child)
  child.stdin?.end()
  const late = options.tools.clock.timer(graceMs, () => {
    if (pid !== child.pid) killIfThere(pid)
    child.kill('SIGKILL')
  })
  await ended
  late.cancel()
}

/** nsenter forks to enter the pid namespace: the agent is its child. */
async function agentPid(child: ChildProcess): Promise<number> {
  const pid = child.pid ?? 0
  const children = await fs.readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return Number(children.trim().split(' ')[0]) || pid
}

/** The same, waiting for the fork; an agent that ends at once leaves nsenter's own pid. */
async function forkedPid(child: ChildProcess, { tools }: AgentsOptions): Promise<number> {
  for (let waitedMs = 0; waitedMs < 2000 && child.exitCode === null; waitedMs += 10) {
    const pid = await agentPid(child)
    if (pid !== child.pid) return pid
    await tools.clock.sleep(10)
  }
  return child.pid ?? 0
}

/** The process may have just ended by itself: that is not an error. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
