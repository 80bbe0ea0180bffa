/** The servers of a local cluster that has several (L5): which are ready, by the answer of each, and which lead, by the Leases in kube-system. */
import os from 'node:os'
import type { ServerStatus } from '#cli/clusterManager'
import type { Pki } from '../pki/pki.ts'
import { type ApiProbe, createApiProbe } from './apiProbe.ts'
import type { ClusterState } from './clusterState.ts'
import { leaseIdentityOf, leasesByWork, type ServerPlan, serversOf } from './controlPlanes.ts'
import type { LocalClusterDeps } from './deps.ts'
import type { WrittenProcess } from './processes.ts'

/** @param probe asks the cluster's endpoint; undefined: it does not answer, so nothing is known of leaders */
export async function serverStatuses(
  deps: LocalClusterDeps,
  state: ClusterState,
  running: ReadonlyMap<string, WrittenProcess>,
  pki: Pki,
  probe: ApiProbe | undefined,
): Promise<ServerStatus[]> {
  const [holders, ready] = await Promise.all([probe ? leaseHolders(probe) : [], Promise.all(serversOf(state).map((server) => isReady(deps, server, pki)))])
  return serversOf(state).map(({ name, port }, at) => ({
    name,
    url: `https://127.0.0.1:${port}`,
    running: running.has(name),
    ready: ready[at] === true,
    leads: holders.filter(({ holder }) => holder === leaseIdentityOf(state, name, os.hostname())).map(({ work }) => work),
  }))
}

async function isReady({ clock }: LocalClusterDeps, { port }: ServerPlan, pki: Pki): Promise<boolean> {
  const probe = createApiProbe(port, pki.ca.cert, pki.admin, clock)
  try {
    return (await probe.get('/readyz'))?.status === 200
  } finally {
    probe.close()
  }
}

function leaseHolders(probe: ApiProbe): Promise<{ readonly work: string; readonly holder: string }[]> {
  return Promise.all(
    Object.entries(leasesByWork).map(async ([work, lease]) => {
      const answer = await probe.get(`/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${lease}`)
      const { spec } = (answer?.status === 200 ? JSON.parse(answer.body) : {}) as { readonly spec?: { readonly holderIdentity?: string } }
      return { work, holder: spec?.holderIdentity ?? '' }
    }),
  )
}
