/**
 * The endpoint of a local cluster with several servers (L5): a process that forwards connections to those that are ready. It has no part in the cluster's work, so
 * that it lives on when any server ends.
 */
import path from 'node:path'
import { createHealthChecks } from '../balancer/healthChecks.ts'
import { type BalancedServer, createTcpBalancer } from '../balancer/tcpBalancer.ts'
import { clusterPaths, readState } from '../localCluster/clusterState.ts'
import { serversOf } from '../localCluster/controlPlanes.ts'
import { loadSharedPki } from '../localCluster/sharedPki.ts'
import { gatewayOf } from '../vnode/clusterNetwork.ts'
import { processTools } from './processTools.ts'

export async function runBalancer(clusterDir: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const { clock, log } = processTools('balancer', { verbosity })
  const paths = clusterPaths(path.resolve(clusterDir, '../..'), path.basename(clusterDir))
  const state = await readState(paths)
  if (!state) throw new Error(`${paths.state} is not there: a cluster is made with "skiff up"`)
  const servers = serversOf(state).map((server): BalancedServer => ({ ...server, address: '127.0.0.1' }))
  const states = new Map<string, string>()
  const balancer = createTcpBalancer(servers, { clock, onRefused: (name) => checks.checkNow(name) })
  const checks = createHealthChecks(servers, {
    clock,
    credentials: async () => {
      const { ca, admin } = (await loadSharedPki(paths, state, clock)).pki
      return { ca: ca.cert, ...admin }
    },
    onCondition: (name, condition) => {
      if (states.get(name) !== condition.state) log.info('A server changed', { server: name, state: condition.state })
      states.set(name, condition.state)
      balancer.setCondition(name, condition)
    },
  })
  const { advertiseAddress } = state.reach ?? {}
  const addresses = ['127.0.0.1', ...(state.network ? [gatewayOf(state.network)] : []), ...(advertiseAddress ? [advertiseAddress] : [])]
  const listeners = await Promise.all(addresses.map((address) => balancer.listen(address, state.port)))
  log.info('Balancing', { addresses: addresses.join(','), port: state.port, servers: servers.length })
  await checks.run(signal)
  for (const listener of listeners) listener.close()
}
