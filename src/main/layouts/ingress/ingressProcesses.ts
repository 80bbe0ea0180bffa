/** Starts the ingress of each real node inside the node's namespaces and keeps it running (L5), as agents.ts does with agents. */
import path from 'node:path'
import { writeFileAtomic } from '#host/files'
import type { RealNode } from '../../localCluster/clusterState.ts'
import { ensureClientCertificate, ensureLeaf } from '../../pki/pki.ts'
import { addressesOf, nodeNetwork, serverUrlOf } from '../../vnode/clusterNetwork.ts'
import type { AgentsOptions } from '../agentsOptions.ts'
import { type NodeProgram, runNodeProgram } from '../nodeProgram.ts'
import { ingressUser, type NodeIngressConfig } from './ingressConfig.ts'

const program: NodeProgram = {
  role: 'ingress',
  word: 'node-ingress',
  args: ['node-ingress', '--config', '/mnt/node/ingress.json'],
  // Longer than requests in flight get to end.
  graceMs: 10_000,
}

export async function runIngressProcesses(options: AgentsOptions, signal: AbortSignal): Promise<void> {
  await writeIngressConfigs(options)
  await Promise.all(options.state.nodes.map((node) => runNodeProgram(options, node, program, signal)))
}

/** Also writes renewed certificates, which a process takes up without a restart. */
export async function writeIngressConfigs(options: AgentsOptions): Promise<void> {
  for (const node of options.state.nodes) await writeConfig(options, node)
}

async function writeConfig({ state, paths, ca, tools }: AgentsOptions, node: RealNode): Promise<void> {
  if (!state.network) throw new Error('a cluster with real nodes has a network')
  const nowMs = tools.clock.now()
  const dir = path.join(paths.node(node.name), 'pki')
  const client = await ensureClientCertificate(dir, ca, 'skiff-ingress', ingressUser, [], nowMs)
  // For server names without a certificate. Its own name exists nowhere.
  const fallback = await ensureLeaf(dir, 'ingress-default', ca, { commonName: 'skiff-ingress-default', usage: 'server', hosts: ['ingress.invalid'] }, nowMs)
  const config: NodeIngressConfig = {
    nodeName: node.name,
    nodeAddress: addressesOf(nodeNetwork(state.network, state.id, node.index))[0] ?? '',
    server: serverUrlOf(state.network, state.port),
    ca: ca.cert,
    clientCert: client.cert,
    clientKey: client.key,
    defaultCert: fallback.cert,
    defaultKey: fallback.key,
  }
  await writeFileAtomic(path.join(paths.node(node.name), 'ingress.json'), JSON.stringify(config), 0o600)
}
