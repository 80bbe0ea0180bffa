/**
 * kubeadm's ClusterConfiguration (L4, pure): what it says about the whole cluster. `skiff up --config` reads it from a file, `skiff join` from the ConfigMap
 * kube-system/kubeadm-config. Upstream: kubeadm's apis/kubeadm/v1beta4 and v1beta3 (v1.36).
 */
import { kubernetesVersion } from '#base/version'
import { CommandError } from '../exitCodes.ts'
import { isEndpoint } from './endpoint.ts'
import { type Arg, type FieldReport, type Fields, fieldsOf } from './fields.ts'

export interface ExternalEtcd {
  readonly endpoints: readonly string[]
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

export interface ClusterSettings {
  readonly clusterName: string | undefined
  readonly controlPlaneEndpoint: string | undefined
  readonly serviceSubnet: string | undefined
  readonly podSubnet: string | undefined
  readonly etcd: ExternalEtcd | 'local' | undefined
  readonly apiServerArgs: readonly Arg[]
  readonly certNames: readonly string[]
  readonly controllerManagerArgs: readonly Arg[]
  readonly schedulerArgs: readonly Arg[]
}

const noContainers = 'left out: the components run as processes of this host and read its files'
const noImages = 'left out: no image is pulled for the control plane'

export function readClusterConfiguration(fields: Fields, report: FieldReport): ClusterSettings {
  const version = fields.text('kubernetesVersion')
  if (version !== undefined && !isOwnVersion(version))
    report.warnings.push(`${fields.at('kubernetesVersion')}: ${version} was asked for, and this Skiff is Kubernetes v${kubernetesVersion}`)
  const networking = networkingOf(fields.object('networking') ?? empty(report), report)
  const apiServer = fields.object('apiServer') ?? empty(report)
  apiServer.ignored('timeoutForControlPlane', 'left out: skiff up waits for up to a minute')
  const certNames = apiServer.texts('certSANs') ?? []
  const settings = {
    clusterName: fields.text('clusterName'),
    controlPlaneEndpoint: endpointOf(fields),
    ...networking,
    etcd: etcdOf(fields.object('etcd'), report),
    apiServerArgs: componentArgs(apiServer),
    certNames,
    controllerManagerArgs: componentArgs(fields.object('controllerManager') ?? empty(report)),
    schedulerArgs: componentArgs(fields.object('scheduler') ?? empty(report)),
  }
  ignoreAddons(fields)
  fields.ignored('certificatesDir', "left out: certificates are in the cluster's directory")
  fields.ignored('imageRepository', noImages)
  fields.ignored('featureGates', 'left out: these are features of kubeadm')
  ignoreAlgorithm(fields, report)
  for (const name of ['certificateValidityPeriod', 'caCertificateValidityPeriod'])
    fields.ignored(name, 'left out: certificates are valid for one year, authorities for ten, and renewed in time')
  fields.end()
  return settings
}

/** For an object that is absent. */
const empty = (report: FieldReport) => fieldsOf({}, '', report)

function isOwnVersion(text: string): boolean {
  const [major, minor] = kubernetesVersion.split('.')
  return text === 'stable' || text === 'latest' || new RegExp(`^v?${major}\\.${minor}(\\.|$)|^(stable|latest)-${major}\\.${minor}$`).test(text)
}

function endpointOf(fields: Fields): string | undefined {
  const endpoint = fields.text('controlPlaneEndpoint')
  if (endpoint === undefined || isEndpoint(endpoint)) return endpoint
  throw new CommandError('usage', `${fields.at('controlPlaneEndpoint')}: expected HOST or HOST:PORT`)
}

function networkingOf(networking: Fields, report: FieldReport) {
  const domain = networking.text('dnsDomain')
  if (domain !== undefined && domain !== 'cluster.local')
    report.warnings.push(`${networking.at('dnsDomain')}: left out, the domain of a cluster is cluster.local`)
  const found = { serviceSubnet: networking.text('serviceSubnet'), podSubnet: networking.text('podSubnet') }
  networking.end()
  return found
}

function componentArgs(component: Fields): readonly Arg[] {
  const args = component.args('extraArgs')
  component.ignored('extraVolumes', noContainers)
  component.ignored('extraEnvs', noContainers)
  component.end()
  return args
}

function etcdOf(etcd: Fields | undefined, report: FieldReport): ExternalEtcd | 'local' | undefined {
  if (!etcd) return undefined
  const [local, external] = [etcd.object('local'), etcd.object('external')]
  etcd.end()
  if (local && external) throw new CommandError('usage', `${etcd.at('local')} and ${etcd.at('external')}: there can be one of them`)
  if (local) {
    local.ignored('dataDir', "left out: the data is in the cluster's directory")
    for (const name of ['imageRepository', 'imageTag']) local.ignored(name, 'left out: the program etcd of this host is used')
    for (const name of ['extraArgs', 'extraEnvs', 'serverCertSANs', 'peerCertSANs']) local.ignored(name, 'left out: Skiff starts etcd with its own flags')
    local.end()
    return 'local'
  }
  return external && externalEtcd(external, report)
}

function externalEtcd(external: Fields, report: FieldReport): ExternalEtcd {
  const endpoints = external.texts('endpoints') ?? []
  if (endpoints.length === 0) throw new CommandError('usage', `${external.at('endpoints')}: it is missing`)
  const plain = external.texts('httpEndpoints') ?? []
  if (plain.length > 0) report.warnings.push(`${external.at('httpEndpoints')}: left out, ${external.at('endpoints')} are asked for their metrics, too`)
  const found = { endpoints, caFile: external.text('caFile'), certFile: external.text('certFile'), keyFile: external.text('keyFile') }
  external.end()
  return found
}

function ignoreAddons(fields: Fields): void {
  const dns = fields.object('dns')
  dns?.refused('disabled', "cluster DNS is a part of Skiff's nodes and cannot be left out")
  for (const name of ['imageRepository', 'imageTag', 'type']) dns?.ignored(name, 'left out: cluster DNS is a part of Skiff')
  dns?.end()
  const proxy = fields.object('proxy')
  proxy?.refused('disabled', "the proxy is a part of Skiff's nodes and cannot be left out")
  proxy?.end()
}

function ignoreAlgorithm(fields: Fields, report: FieldReport): void {
  const algorithm = fields.text('encryptionAlgorithm')
  if (algorithm !== undefined && algorithm !== 'ECDSA-P256')
    report.warnings.push(`${fields.at('encryptionAlgorithm')}: ${algorithm} was asked for, keys are ECDSA-P256`)
}
