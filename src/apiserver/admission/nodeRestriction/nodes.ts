/**
 * Limits a node's changes of its Node (L3): it cannot change taints, owners and restricted labels, which affect which pods run there.
 * Upstream: admitNode of plugin/pkg/admission/noderestriction, staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepEqual } from '../../core/sameObject.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { objectOf, refuse } from '../attributes.ts'

const restrictedLabelDomain = 'node-restriction.kubernetes.io'

/** Labels of the kubernetes.io and k8s.io domains that a kubelet may set on itself. */
const allowedKubernetesLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
])
const allowedKubernetesDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const kubernetesDomains = ['kubernetes.io', 'k8s.io']

export function checkNode(attributes: AdmissionAttributes, node: string): void {
  const requested = attributes.name || attributes.object?.metadata.name || ''
  const who = `node ${JSON.stringify(node)}`
  if (requested !== node) throw refuse(attributes, `${who} is not allowed to modify node ${JSON.stringify(requested)}`)
  const fault = attributes.operation === 'CREATE' ? createFault(objectOf<Node>(attributes), who) : updateFault(attributes, who)
  if (fault) throw refuse(attributes, fault)
}

function createFault({ metadata, spec }: Node, who: string): string | undefined {
  if (spec?.configSource) return `${who} is not allowed to create pods with a non-nil configSource`
  const labels = forbiddenLabels(metadata.labels, undefined)
  return labels.length > 0 ? `${who} is not allowed to set the following labels: ${labels.join(', ')}` : undefined
}

function updateFault(attributes: AdmissionAttributes, who: string): string | undefined {
  if (attributes.operation !== 'UPDATE') return undefined
  const { metadata, spec } = objectOf<Node>(attributes)
  const old = attributes.oldObject as Frozen<Node> | undefined
  if (spec?.configSource && !deepEqual(spec.configSource, old?.spec?.configSource)) {
    return `${who} is not allowed to update configSource to a new non-nil configSource`
  }
  if (!deepEqual(spec?.taints ?? [], old?.spec?.taints ?? [])) return `${who} is not allowed to modify taints`
  if (!deepEqual(metadata.ownerReferences ?? [], old?.metadata.ownerReferences ?? [])) return `${who} is not allowed to modify ownerReferences`
  const labels = forbiddenLabels(metadata.labels, old?.metadata.labels)
  return labels.length > 0 ? `is not allowed to modify labels: ${labels.join(', ')}` : undefined
}

type Labels = Readonly<Record<string, string>> | undefined

function forbiddenLabels(now: Labels = {}, before: Labels = {}): string[] {
  const changed = [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((key) => now[key] !== before[key])
  return changed.filter(isForbidden).sort()
}

const isWithin = (domain: string, parent: string): boolean => domain === parent || domain.endsWith(`.${parent}`)

function isForbidden(key: string): boolean {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
  if (isWithin(domain, restrictedLabelDomain)) return true
  if (!kubernetesDomains.some((parent) => isWithin(domain, parent)) || allowedKubernetesLabels.has(key)) return false
  return !allowedKubernetesDomains.some((parent) => isWithin(domain, parent))
}
