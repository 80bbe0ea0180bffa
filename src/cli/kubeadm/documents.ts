/** Finds kubeadm's documents in a file of YAML (L4, pure). Upstream: kubeadm's util/config (v1.36). */
import { parseYamlDocuments } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { CommandError } from '../exitCodes.ts'
import { kubeadmGroup } from './configFile.ts'
import { type FieldReport, type Fields, fieldsOf } from './fields.ts'

const versions = ['v1beta4', 'v1beta3']
/** Kinds of kubeadm, and of the components whose configuration its files may carry. */
const otherKinds: Readonly<Record<string, string>> = {
  InitConfiguration: 'it is for skiff up',
  ClusterConfiguration: 'it is for skiff up',
  JoinConfiguration: 'it is for skiff join',
  KubeletConfiguration: "the kubelets of a cluster take kube-system/kubelet-config, and skiff join takes flags and a --config-dir after '--'",
  KubeProxyConfiguration: 'Skiff runs its own proxy with the nodes',
  ResetConfiguration: 'skiff delete removes a cluster',
  UpgradeConfiguration: 'a newer Skiff upgrades a cluster when it starts it',
}

export type Documents = ReadonlyMap<string, Fields>

/** The documents of these kinds, at most one of each. @param file its text, or all its documents @throws CommandError usage */
export function readDocuments(file: string | readonly unknown[], kinds: readonly string[], report: FieldReport): Documents {
  const found = new Map<string, Fields>()
  for (const document of typeof file === 'string' ? parsed(file) : file) {
    const fields = fieldsOf(document, '', report)
    const [apiVersion = '', kind = ''] = [fields.text('apiVersion'), fields.text('kind')]
    if (kinds.includes(kind)) {
      if (found.has(kind)) throw new CommandError('usage', `two documents of kind ${kind}: there can be one`)
      checkVersion(apiVersion, kind, report)
      found.set(kind, fields)
    } else if (Object.hasOwn(otherKinds, kind)) report.warnings.push(`${kind}: left out, ${otherKinds[kind]}`)
    else report.warnings.push(`${kind || 'a document without a kind'}: left out, it is not one of kubeadm's`)
  }
  return found
}

function parsed(text: string): readonly unknown[] {
  try {
    return parseYamlDocuments(text)
  } catch (error) {
    throw new CommandError('usage', messageOf(error), { cause: error })
  }
}

function checkVersion(apiVersion: string, kind: string, report: FieldReport): void {
  const [ofGroup, version = ''] = apiVersion.split('/')
  if (ofGroup !== kubeadmGroup || !versions.includes(version)) {
    throw new CommandError('usage', `apiVersion ${apiVersion || '(none)'} of ${kind}: expected ${versions.map((one) => `${kubeadmGroup}/${one}`).join(' or ')}`)
  }
  if (version !== versions[0]) report.warnings.push(`${kind}: ${apiVersion} is an older version: ${kubeadmGroup}/${versions[0]} is the newest`)
}
