/** Starts the ingress of each real node inside the node's namespaces and keeps it running (L5), as agents.ts does with agents. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { writeFileAtomic } from '#host/files'
import type { RealNode } from '../../localCluster/clusterState.ts'
import { ensureClientCertificate, ensureLeaf } from '../../pki/pki.ts'
import { gatewayOf, nodeNetwork } from '../../vnode/clusterNetwork.ts'
import { vnodeProcess } from '../../vnode/vnode.ts'
import type { AgentsOptions } from '../agents.ts'
import { type SupervisedProcess, superviseProcess } from '../superviseProcess.ts'
import { endFormer, startInVnode, type VnodeChild } from '../vnodeChild.ts'
import { ingressUser, type NodeIngressConfig } from './ingressConfig.ts'

/** Longer than requests in flight get to end. */
const graceMs = 10_000
/** The word that makes this program an ingress. */
const role = 'node-ingress'

export async function runIngressProcesses(options: AgentsOptions, signal: AbortSignal): Promise<void> {
  await Promise.all(options.state.nodes.map((node) => supervise(options, node, signal)))
}

/** Also writes renewed certificates, which a process takes up without a restart. */
export async function writeIngressConfigs(options: AgentsOptions): Promise<void> {
  for (const node of options.state.nodes) await writeConfig(options, node)
}

async function supervise(options: AgentsOptions, node: RealNode, signal: AbortSignal): Promise<void> {
  const { tools, processes } = options
  await writeConfig(options, node)
  const key = `${node.name}/ingress`
  const ingress: SupervisedProcess<VnodeChild> = {
    start: () => start(options, node),
    onMissing: () => {},
    onStarted: async ({ pid }) => processes.set(key, { role: 'ingress', pid, node: node.name }),
    onEnded: async (_, stopped) => {
      if (!stopped) tools.log.warn('The ingress of a node ended, starting it again', { node: node.name })
      await processes.set(key, undefined)
    },
    end: (child, ended) => child.end(ended, graceMs, tools.clock),
  }
  await superviseProcess(ingress, tools, signal)
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
    nodeAddress: nodeNetwork(state.network, state.id, node.index).address,
    server: `https://${gatewayOf(state.network)}:${state.port}`,
    ca: ca.cert,
    clientCert: client.cert,
    clientKey: client.key,
    defaultCert: fallback.cert,
    defaultKey: fallback.key,
  }
  await writeFileAtomic(path.join(paths.node(node.name), 'ingress.json'), JSON.stringify(config), 0o600)
}

/** Undefined when the node itself does not run. */
async function start(options: AgentsOptions, node: RealNode): Promise<VnodeChild | undefined> {
  const { clock } = options.tools
  const dir = options.paths.node(node.name)
  const init = await vnodeProcess(dir)
  if (!init) return undefined
  const file = await fs.open(path.join(dir, 'ingress.log'), 'a', 0o600)
  try {
    await endFormer(init, role, graceMs, clock)
    return await startInVnode(init, [...options.self, role, '--config', '/mnt/node/ingress.json', '--v', String(options.verbosity)], { log: file.fd, clock })
  } finally {
    await file.close()
  }
}
