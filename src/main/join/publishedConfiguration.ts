/**
 * A cluster's ClusterConfiguration of kubeadm (L5, pure), which the ConfigMap kube-system/kubeadm-config holds: a further control plane starts with the same flags,
 * over the same etcd. Upstream: kubeadm's phases/uploadconfig (v1.36).
 */
import { kubernetesRelease } from '#base/version'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { type ClusterPaths, type ClusterState, joinEndpointOf } from '../localCluster/clusterState.ts'
import { historyArgs } from '../localCluster/historyLimits.ts'
import { ownEndpoint } from './sharedEtcd.ts'

/** What kube-apiserver's flags say about an etcd that is there. */
export interface EtcdFlags {
  readonly endpoints: readonly string[]
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
}

const etcdFlags = { 'etcd-cafile': 'caFile', 'etcd-certfile': 'certFile', 'etcd-keyfile': 'keyFile' } as const

/** The etcd that other machines may reach; undefined: the objects are in a file, or in an etcd of this machine. */
export function sharedEtcdOf(state: Pick<ClusterState, 'apiServerArgs'>): EtcdFlags | undefined {
  const etcd = externalEtcdOf(state)
  return etcd && ownEndpoint(etcd.endpoints) === undefined ? etcd : undefined
}

/** The etcd that the user has named. */
export function externalEtcdOf({ apiServerArgs = [] }: Pick<ClusterState, 'apiServerArgs'>): EtcdFlags | undefined {
  const flags = new Map(apiServerArgs.map(asFlag).map(({ name, value }) => [name, value]))
  const endpoints = (flags.get('etcd-servers') ?? '').split(',').filter((url) => url !== '')
  if (endpoints.length === 0) return undefined
  const files = Object.entries(etcdFlags).map(([flag, field]) => [field, flags.get(flag) ?? ''])
  return { endpoints, ...(Object.fromEntries(files) as Omit<EtcdFlags, 'endpoints'>) }
}

/** The form is that of the file, v1beta4. */
export function clusterConfigurationOf(state: ClusterState, paths: Pick<ClusterPaths, 'store' | 'pki'>): object {
  const { clusterCidr, serviceCidr, clusterDomain } = addressPlanOf(state)
  const ofEtcd = new Set(['etcd-servers', ...Object.keys(etcdFlags)])
  const extraArgs = (args: readonly string[]) => args.map(asFlag).filter(({ name }) => !ofEtcd.has(name))
  const external = externalEtcdOf(state)
  return {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'ClusterConfiguration',
    clusterName: state.name,
    kubernetesVersion: kubernetesRelease,
    controlPlaneEndpoint: joinEndpointOf(state),
    certificatesDir: paths.pki,
    networking: { dnsDomain: clusterDomain, podSubnet: clusterCidr, serviceSubnet: serviceCidr },
    etcd: external ? { external } : { local: { dataDir: paths.store } },
    apiServer: { certSANs: state.reach?.certNames ?? [], extraArgs: extraArgs([...historyArgs(state), ...(state.apiServerArgs ?? [])]) },
    controllerManager: { extraArgs: extraArgs(state.controllerManagerArgs ?? []) },
    scheduler: { extraArgs: extraArgs(state.schedulerArgs ?? []) },
    dns: {},
    proxy: {},
  }
}

function asFlag(word: string): { readonly name: string; readonly value: string } {
  const [, name = '', , value = 'true'] = /^--([^=]+)(=([\s\S]*))?$/.exec(word) ?? []
  return { name, value }
}
