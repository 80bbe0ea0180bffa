/**
 * The kubelet's flags that are no part of its configuration file (L5), the file itself with its drop-ins, and what all of them come to. Without a file
 * upstream's kubelet lets everybody do everything; this one keeps the file's defaults. Upstream: cmd/kubelet/app/options/options.go,
 * cmd/kubelet/app/server.go (v1.36).
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { type ConfigurationDocument, defaultDocument, mergeDocuments, readDocument } from '#kubelet/configuration/document'
import { unsupported } from '#kubelet/configuration/settings'
import { validateDocument } from '#kubelet/configuration/validate'
import { duration, flag, list, pairs, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { usable } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

const ignored = 'Accepted, without effect'

export interface KubeletFlags {
  readonly kubeconfig: string
  readonly bootstrapKubeconfig: string
  readonly hostnameOverride: string
  readonly nodeIPs: readonly string[]
  readonly certDir: string
  readonly rootDir: string
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly verbosity: number
  /** Of the file and its drop-ins. */
  readonly file: ConfigurationDocument
  /** What was given and does nothing here, a sentence each. */
  readonly warnings: readonly string[]
}

export const kubeletFlags = optionGroup({
  name: 'Kubelet',
  flags: {
    'bootstrap-kubeconfig': text('A kubeconfig with the right to ask for a client certificate, used while --kubeconfig names no file'),
    'cert-dir': text('Where certificates are kept that are asked for or made', '/var/lib/kubelet/pki'),
    'cloud-config': text(ignored),
    'cloud-provider': text('external: a cloud controller manager says more about the node; nothing else is supported'),
    config: text('A file of kind KubeletConfiguration'),
    'config-dir': text('A directory of drop-ins, *.conf, merged over the file in the order of their names'),
    'exit-on-lock-contention': flag(ignored),
    'hostname-override': text("The node's name; empty: the machine's"),
    'image-credential-provider-bin-dir': text(ignored),
    'image-credential-provider-config': text(ignored),
    'keep-terminated-pod-volumes': flag(ignored),
    kubeconfig: text('Where the API server is and how to log in'),
    'lock-file': text(ignored),
    'log-flush-frequency': duration(ignored, 5000),
    'logging-format': text(ignored, 'text'),
    'maximum-dead-containers': whole(ignored, -1),
    'maximum-dead-containers-per-container': whole(ignored, 1),
    'minimum-container-ttl-duration': duration(ignored, 0),
    'node-ip': list("The node's addresses, one of each family; empty: that of the default route"),
    'node-labels': pairs('Labels of the node when it is registered'),
    'pod-infra-container-image': text(ignored),
    'register-schedulable': flag(ignored, true),
    'root-dir': text('Where volumes, plugins and state are kept', '/var/lib/kubelet'),
    v: whole('How much the log says', 2),
    vmodule: text(ignored),
  },
  async settings(values, context): Promise<KubeletFlags> {
    const provider = values['cloud-provider']
    const faults = [
      ...(provider === '' || provider === 'external' ? [] : [`unknown cloud provider "${provider}": use "external" or leave it out`]),
      ...labelFaults(values['node-labels']),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    const paths = [...(values.config === '' ? [] : [values.config]), ...(await dropIns(values['config-dir']))]
    const texts = await Promise.all(paths.map((file) => context.file(file).read().catch(asUsage)))
    const documents = texts.map((content, index) => usable(() => readDocument(content, paths[index] ?? '')))
    const given = (['image-credential-provider-config', 'lock-file', 'cloud-config', 'pod-infra-container-image', 'vmodule'] as const).filter(
      (name) => values[name] !== '',
    )
    return {
      kubeconfig: values.kubeconfig,
      bootstrapKubeconfig: values['bootstrap-kubeconfig'],
      hostnameOverride: values['hostname-override'],
      nodeIPs: values['node-ip'],
      certDir: values['cert-dir'],
      rootDir: path.resolve(values['root-dir']),
      nodeLabels: values['node-labels'],
      verbosity: values.v,
      file: documents.reduce(mergeDocuments, {}),
      warnings: given.map((name) => `--${name} is given, but this kubelet does not support it: it has no effect`),
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
