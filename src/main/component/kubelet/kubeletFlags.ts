/**
 * The kubelet's flags that are no part of its configuration file (L5), the file itself with its drop-ins, and what all of them come to. Without a file
 * upstream's kubelet allows every request; this one keeps the file's defaults. Upstream: cmd/kubelet/app/options/options.go,
 * cmd/kubelet/app/server.go (v1.36).
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { type ConfigurationDocument, defaultDocument, mergeDocuments, readDocument } from '#kubelet/configuration/document'
import { unsupported } from '#kubelet/configuration/settings'
import { validateDocument } from '#kubelet/configuration/validate'
import { duration, flag, pairs, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { usable } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import { optional } from '../options/leaderElection.ts'
import { type NodeAddresses, parseNodeIP } from './nodeAddresses.ts'

const ignored = 'Accepted, without effect'

const ignoredFlags = {
  'application-metrics-count-limit': text(ignored),
  'boot-id-file': text(ignored),
  'cloud-config': text(ignored),
  'container-hints': text(ignored),
  containerd: text(ignored),
  'containerd-namespace': text(ignored),
  'enable-load-reader': flag(ignored),
  'event-storage-age-limit': text(ignored),
  'event-storage-event-limit': text(ignored),
  'exit-on-lock-contention': flag(ignored),
  'experimental-allocatable-ignore-eviction': flag(ignored),
  'experimental-mounter-path': text(ignored),
  'global-housekeeping-interval': text(ignored),
  'housekeeping-interval': text(ignored),
  'keep-terminated-pod-volumes': flag(ignored),
  'lock-file': text(ignored),
  'log-cadvisor-usage': flag(ignored),
  'log-flush-frequency': duration(ignored, 5000),
  'log-json-info-buffer-size': text(ignored),
  'log-json-split-stream': flag(ignored),
  'log-text-info-buffer-size': text(ignored),
  'log-text-split-stream': flag(ignored),
  'machine-id-file': text(ignored),
  'maximum-dead-containers': whole(ignored, -1),
  'maximum-dead-containers-per-container': whole(ignored, 1),
  'minimum-container-ttl-duration': duration(ignored, 0),
  'pod-infra-container-image': text(ignored),
  'register-schedulable': flag(ignored, true),
  'runtime-cgroups': text(ignored),
  'storage-driver-buffer-duration': text(ignored),
  'storage-driver-db': text(ignored),
  'storage-driver-host': text(ignored),
  'storage-driver-password': text(ignored),
  'storage-driver-secure': flag(ignored),
  'storage-driver-table': text(ignored),
  'storage-driver-user': text(ignored),
  vmodule: text(ignored),
} as const

export interface KubeletFlags {
  readonly kubeconfig: string
  readonly bootstrapKubeconfig: string
  readonly hostnameOverride: string
  readonly nodeIP: NodeAddresses
  readonly certDir: string
  readonly rootDir: string
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly externalCloudProvider: boolean
  readonly imageCredentialProviderConfig: string
  readonly imageCredentialProviderBinDir: string
  /** Undefined: as the file has it. */
  readonly verbosity: number | undefined
  readonly loggingFormat: 'text' | 'json' | undefined
  /** The configuration of the file and its drop-ins. */
  readonly file: ConfigurationDocument
  /** Flags that were given and have no effect here, a sentence each. */
  readonly warnings: readonly string[]
}

export const kubeletFlags = optionGroup({
  name: 'Kubelet',
  flags: {
    'bootstrap-kubeconfig': text('A kubeconfig with the right to ask for a client certificate, used while --kubeconfig names no file'),
    'cert-dir': text('Where certificates are kept that are asked for or made', '/var/lib/kubelet/pki'),
    'cloud-provider': text('external: a cloud controller manager says more about the node; nothing else is supported'),
    config: text('A file of kind KubeletConfiguration'),
    'config-dir': text('A directory of drop-ins, *.conf, merged over the file in the order of their names'),
    'hostname-override': text("The node's name; empty: the machine's"),
    'image-credential-provider-bin-dir': text('Where the programs are that hand out credentials of registries'),
    'image-credential-provider-config': text('A file of kind CredentialProviderConfig: for which images which of them is asked'),
    kubeconfig: text('Where the API server is and how to log in; empty: there is none, only static pods run'),
    'logging-format': optional(text('text or json')),
    'node-ip': text("The node's address, or one of each family; empty or 0.0.0.0: that of the default route; :: the same, but IPv6 before IPv4"),
    'node-labels': pairs('Labels of the node when it is registered'),
    'root-dir': text('Where volumes, plugins and state are kept', '/var/lib/kubelet'),
    v: optional(whole('How much the log says', 2)),
    ...ignoredFlags,
  },
  async settings(values, context): Promise<KubeletFlags> {
    const provider = values['cloud-provider']
    const faults = [
      ...(provider === '' || provider === 'external' ? [] : [`unknown cloud provider "${provider}": use "external" or leave it out`]),
      ...labelFaults(values['node-labels']),
      ...(['text', 'json', undefined].includes(values['logging-format']) ? [] : [`--logging-format "${values['logging-format']}" must be "text" or "json"`]),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    const nodeIP = parseNodeIP(values['node-ip'])
    const paths = [...(values.config === '' ? [] : [values.config]), ...(await dropIns(values['config-dir']))]
    const texts = await Promise.all(paths.map((file) => context.file(file).read().catch(asUsage)))
    const documents = texts.map((content, index) => usable(() => readDocument(content, paths[index] ?? '')))
    const given = (Object.keys(ignoredFlags) as (keyof typeof ignoredFlags)[]).filter((name) => values[name] !== ignoredFlags[name].default)
    return {
      kubeconfig: values.kubeconfig,
      bootstrapKubeconfig: values['bootstrap-kubeconfig'],
      hostnameOverride: values['hostname-override'],
      nodeIP,
      certDir: values['cert-dir'],
      rootDir: path.resolve(values['root-dir']),
      nodeLabels: values['node-labels'],
      externalCloudProvider: provider === 'external',
      imageCredentialProviderConfig: values['image-credential-provider-config'],
      imageCredentialProviderBinDir: values['image-credential-provider-bin-dir'],
      verbosity: values.v,
      loggingFormat: values['logging-format'] as KubeletFlags['loggingFormat'],
      file: documents.reduce(mergeDocuments, {}),
      warnings: [
        ...given.map((name) => `--${name} is given, but this kubelet does not support it: it has no effect`),
        ...nodeIP.invalid.map((text) => `Could not parse node IP "${text}", ignoring it`),
      ],
    }
  },
})

function asUsage(error: Error): never {
  throw new UsageError([error.message])
}

async function dropIns(directory: string): Promise<string[]> {
  if (directory === '') return []
  const names = await fs.readdir(directory).catch((error: Error) => asUsage(new Error(`--config-dir ${directory} cannot be read: ${error.message}`)))
  return names
    .filter((name) => name.endsWith('.conf'))
    .sort()
    .map((name) => path.join(directory, name))
}

const allowedLabels = new Set(
  ['hostname', 'os', 'arch']
    .flatMap((name) => [`kubernetes.io/${name}`, `beta.kubernetes.io/${name}`])
    .concat([
      'beta.kubernetes.io/instance-type',
      'node.kubernetes.io/instance-type',
      'failure-domain.beta.kubernetes.io/region',
      'failure-domain.beta.kubernetes.io/zone',
      'topology.kubernetes.io/region',
      'topology.kubernetes.io/zone',
    ]),
)
const allowedSpaces = /(^|\.)(kubelet|node)\.kubernetes\.io$/

/** Only some of Kubernetes' own labels may be a kubelet's to set. */
function labelFaults(labels: Readonly<Record<string, string>>): string[] {
  const unknown = Object.keys(labels).filter((key) => {
    const space = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
    return /(^|\.)(kubernetes|k8s)\.io$/.test(space) && !allowedSpaces.test(space) && !allowedLabels.has(key)
  })
  if (unknown.length === 0) return []
  return [
    `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${unknown.sort().join(' ')}]\n` +
      `--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (${[...allowedLabels].sort().join(', ')})`,
  ]
}

/** File, drop-ins, then flags. @throws UsageError with all that is wrong with it */
export function effectiveConfiguration(
  file: ConfigurationDocument,
  flags: ConfigurationDocument,
): { given: ConfigurationDocument; document: ConfigurationDocument; warnings: string[] } {
  const given = mergeDocuments(file, flags)
  const document = defaultDocument(given)
  const faults = validateDocument(document)
  if (faults.length > 0) throw new UsageError(faults)
  return { given, document, warnings: unsupported(given) }
}
