/**
 * How the components of a control plane that joins are started (L5, pure): as the cluster's own, over its etcd, on this machine's address.
 * Upstream: kubeadm's phases/controlplane (v1.36).
 */
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import type { ClusterSettings } from '#cli/kubeadm/clusterConfiguration'
import { joinEndpoint, splitEndpoint } from '#cli/kubeadm/endpoint'
import type { Arg } from '#cli/kubeadm/fields'
import { controllerArgs } from '../layouts/controllerArgs.ts'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { usualRanges } from '../vnode/ranges.ts'
import type { ControlPlaneFiles } from './controlPlanePaths.ts'
import type { EtcdClientFiles } from './sharedCertificates.ts'
import { notShared, ownEndpoint } from './sharedEtcd.ts'

/** Kept in a file, for the next start. */
export interface ControlPlanePlan {
  readonly port: number
  /** The address of the cluster, as HOST:PORT. */
  readonly endpoint: string
  /** What the serving certificate is for. */
  readonly servingNames: readonly string[]
  readonly apiServer: readonly string[]
  readonly controllerManager: readonly string[]
  readonly scheduler: readonly string[]
}

export interface JoiningServer {
  readonly address: string
  readonly port: number
  readonly hostName: string
  /** The address through which the machine joins. */
  readonly joinedThrough: { readonly host: string; readonly port: number }
}

/** @param cluster one that refuseUnshared() accepts */
export function planControlPlane(
  cluster: ClusterSettings,
  { address, port, hostName, joinedThrough }: JoiningServer,
  files: ControlPlaneFiles,
  etcdClient: { readonly [name in keyof EtcdClientFiles]: string },
): ControlPlanePlan {
  const etcd = sharedEtcd(cluster)
  const { podSubnet: clusterCidr = usualRanges.clusterCidr, serviceSubnet: serviceCidr = usualRanges.serviceCidr } = cluster
  const plan = addressPlanOf({ ranges: { clusterCidr, serviceCidr } })
  const endpoint = joinEndpoint({ ...joinedThrough, ...(cluster.controlPlaneEndpoint === undefined ? {} : splitEndpoint(cluster.controlPlaneEndpoint)) })
  const pki = (name: string) => path.join(files.pki, name)
  const isThere = (name: keyof EtcdClientFiles) => etcdClient[name] !== ''
  const servingNames = new Set([
    ...['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', `kubernetes.default.svc.${plan.clusterDomain}`],
    ...['127.0.0.1', '::1', plan.apiClusterIp, address, hostName, joinedThrough.host, splitEndpoint(endpoint).host],
    ...cluster.certNames,
  ])
  return {
    port,
    endpoint,
    servingNames: [...servingNames],
    apiServer: [
      // Nothing is stored there, but the program asks for one.
      `--data-dir=${files.pki}`,
      `--cert-dir=${files.pki}`,
      `--cert-names=${[...servingNames].join(',')}`,
      `--bind-address=${address.includes(':') ? '::' : '0.0.0.0'}`,
      `--advertise-address=${address}`,
      `--secure-port=${port}`,
      `--service-cluster-ip-range=${plan.serviceCidr}`,
      '--enable-bootstrap-token-auth=true',
      '--enable-admission-plugins=NodeRestriction',
      // As each server of a local cluster does.
      '--node-apis=true',
      `--etcd-servers=${etcd.join(',')}`,
      ...(isThere('ca') ? [`--etcd-cafile=${pki(etcdClient.ca)}`] : []),
      ...(isThere('cert') && isThere('key') ? [`--etcd-certfile=${pki(etcdClient.cert)}`, `--etcd-keyfile=${pki(etcdClient.key)}`] : []),
      ...words(cluster.apiServerArgs),
    ],
    controllerManager: [
      ...ofComponent(files.controllerManager, pki),
      `--root-ca-file=${pki('ca.crt')}`,
      `--service-account-private-key-file=${pki('sa.key')}`,
      `--cluster-signing-cert-file=${pki('ca.crt')}`,
      `--cluster-signing-key-file=${pki('ca.key')}`,
      '--use-service-account-credentials=true',
      ...controllerArgs(plan, words(cluster.controllerManagerArgs)),
    ],
    scheduler: [...ofComponent(files.scheduler, pki), ...words(cluster.schedulerArgs)],
  }
}

/** @throws CommandError unmetPrerequisite when another machine cannot take part in the cluster */
export function refuseUnshared(cluster: ClusterSettings): void {
  sharedEtcd(cluster)
  refuseSoleLeaders(cluster)
}

function ofComponent(kubeconfig: string, pki: (name: string) => string): string[] {
  return [
    '--bind-address=127.0.0.1',
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
  ]
}

function words(args: readonly Arg[]): string[] {
  return args.map(({ name, value }) => `--${name}=${value}`)
}

function sharedEtcd({ etcd }: ClusterSettings): readonly string[] {
  if (etcd === undefined || etcd === 'local') throw notShared('the cluster keeps its objects on its own machine')
  const own = ownEndpoint(etcd.endpoints)
  if (own === undefined) return etcd.endpoints
  throw notShared(`the cluster reaches its etcd at ${own}, which is another etcd on this machine, or none`)
}

/** Two schedulers without a lease would both place each pod. */
function refuseSoleLeaders({ controllerManagerArgs, schedulerArgs }: ClusterSettings): void {
  const sole = [...controllerManagerArgs, ...schedulerArgs].find(({ name, value }) => name === 'leader-elect' && value !== 'true')
  if (sole) {
    throw new CommandError('unmetPrerequisite', 'the cluster was made with --leader-elect=false: its controllers and those of this machine would act at once', {
      hint: 'start the cluster without the flag',
    })
  }
}
