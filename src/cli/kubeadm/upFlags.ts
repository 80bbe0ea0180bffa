/**
 * The flags of `skiff up` that a file of kubeadm stands for (L4, pure): its ClusterConfiguration and InitConfiguration. Flags of components that Skiff does not
 * have become warnings.
 */
import { CommandError } from '../exitCodes.ts'
import { type ClusterSettings, readClusterConfiguration } from './clusterConfiguration.ts'
import { readDocuments } from './documents.ts'
import { type Arg, type FieldReport, fieldsOf } from './fields.ts'
import { type ApiEndpoint, readInitConfiguration } from './initConfiguration.ts'

/** The names of the flags that each component of a local cluster takes. */
export interface ComponentFlags {
  readonly 'kube-apiserver': ReadonlySet<string>
  readonly 'kube-controller-manager': ReadonlySet<string>
  readonly 'kube-scheduler': ReadonlySet<string>
}

/** In the form of Skiff's own file: flags without their dashes. */
export type UpValues = Readonly<Record<string, unknown>>

/** @param file its text, or all its documents @throws CommandError usage */
export function kubeadmUpValues(file: string | readonly unknown[], known: ComponentFlags, report: FieldReport): UpValues {
  const documents = readDocuments(file, ['ClusterConfiguration', 'InitConfiguration'], report)
  if (documents.size === 0) throw new CommandError('usage', 'it has no document of kind ClusterConfiguration or InitConfiguration')
  const cluster = readClusterConfiguration(documents.get('ClusterConfiguration') ?? fieldsOf({}, '', report), report)
  const init = documents.get('InitConfiguration')
  const values: UpValues = { ...clusterValues(cluster, known, report), ...(init ? endpointValues(readInitConfiguration(init)) : {}) }
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

function clusterValues(cluster: ClusterSettings, known: ComponentFlags, report: FieldReport): UpValues {
  const args = (component: keyof ComponentFlags, given: readonly Arg[]) => argsOf(component, given, known[component], report)
  return {
    name: cluster.clusterName,
    'control-plane-endpoint': cluster.controlPlaneEndpoint,
    'service-cidr': cluster.serviceSubnet,
    'pod-cidr': cluster.podSubnet,
    'apiserver-cert-extra-sans': cluster.certNames.length > 0 ? cluster.certNames.join(',') : undefined,
    ...etcdValues(cluster.etcd),
    'kube-apiserver-arg': args('kube-apiserver', cluster.apiServerArgs),
    'kube-controller-manager-arg': args('kube-controller-manager', cluster.controllerManagerArgs),
    'kube-scheduler-arg': args('kube-scheduler', cluster.schedulerArgs),
  }
}

function etcdValues(etcd: ClusterSettings['etcd']): UpValues {
  if (etcd === undefined) return {}
  if (etcd === 'local') return { etcd: '1' }
  const { endpoints, caFile, certFile, keyFile } = etcd
  return { 'etcd-servers': endpoints.join(','), 'etcd-cafile': caFile, 'etcd-certfile': certFile, 'etcd-keyfile': keyFile }
}

function endpointValues({ advertiseAddress, bindPort }: ApiEndpoint): UpValues {
  return { 'apiserver-advertise-address': advertiseAddress, port: bindPort }
}

function argsOf(component: keyof ComponentFlags, given: readonly Arg[], known: ReadonlySet<string>, report: FieldReport): readonly string[] | undefined {
  const [taken, others] = [given.filter(({ name }) => known.has(name)), given.filter(({ name }) => !known.has(name))]
  for (const { name, at } of others) report.warnings.push(`${at}: left out, ${component} of a cluster of skiff up has no flag --${name}`)
  return taken.length > 0 ? taken.map(({ name, value }) => `${name}=${value}`) : undefined
}
