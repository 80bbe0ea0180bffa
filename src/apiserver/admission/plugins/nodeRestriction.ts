/**
 * A node's identity may change only what is its own: its Node, Lease and CSINode, the status of its pods, and tokens for them (L3).
 * Upstream: plugin/pkg/admission/noderestriction.
 */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isMirrorPod } from '#api/helpers/pods'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { nodeOf } from '../../authz/node.ts'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { objectOf, refuse } from '../attributes.ts'

const mirrorAnnotation = 'kubernetes.io/config.mirror'
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
const allowedKubernetesPrefixes = ['kubelet.kubernetes.io', 'node.kubernetes.io']

export function nodeRestriction(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    handles: () => true,
    validate: (attributes) => {
      const nodeName = nodeOf(attributes.user)
      if (nodeName === undefined) return
      const { group, resource } = attributes.resource
      if (group === '' && resource === 'pods') checkPod(attributes, nodeName, reader)
      else if (group === '' && resource === 'nodes') checkNode(attributes, nodeName)
      else if (group === '' && resource === 'serviceaccounts' && attributes.subresource === 'token') checkToken(attributes, nodeName, reader)
      else if (group === 'coordination.k8s.io' && resource === 'leases') checkLease(attributes, nodeName)
      else if (group === 'storage.k8s.io' && resource === 'csinodes')
        checkOwnName(attributes, nodeName, 'can only access CSINode with the same name as the requesting node')
    },
  }
}

function checkPod(attributes: AdmissionAttributes, nodeName: string, reader: ObjectReader): void {
  const { subresource, operation } = attributes
  if (subresource === '' && operation === 'CREATE') checkMirrorPod(attributes, nodeName)
  else if (subresource === '' && operation === 'DELETE') checkOwnPod(attributes, nodeName, reader, 'delete')
  else if (subresource === '') throw refuse(attributes, `unexpected operation "${operation}", node "${nodeName}" can only create and delete mirror pods`)
  else if (subresource === 'status') checkOwnPod(attributes, nodeName, reader, 'update status for')
  else if (subresource === 'eviction') checkOwnPod(attributes, nodeName, reader, 'evict')
  else throw refuse(attributes, `unexpected pod subresource "${subresource}", only 'status' and 'eviction' are allowed`)
}

function checkMirrorPod(attributes: AdmissionAttributes, nodeName: string): void {
  const pod = objectOf<Pod>(attributes)
  if (!isMirrorPod(pod)) throw refuse(attributes, `pod does not have "${mirrorAnnotation}" annotation, node "${nodeName}" can only create mirror pods`)
  if (pod.spec.nodeName !== nodeName) throw refuse(attributes, `node "${nodeName}" can only create pods with spec.nodeName set to itself`)
  const owners = pod.metadata.ownerReferences ?? []
  if (owners.length !== 1 || owners[0]?.kind !== 'Node' || owners[0]?.name !== nodeName) {
    throw refuse(attributes, `node "${nodeName}" can only create pods with an owner reference set to itself`)
  }
}

function checkOwnPod(attributes: AdmissionAttributes, nodeName: string, reader: ObjectReader, action: string): void {
  const pod = (attributes.oldObject as Frozen<Pod> | undefined) ?? reader.get<Pod>({ group: '', resource: 'pods' }, attributes.namespace, attributes.name)
  if (pod?.spec.nodeName !== nodeName) throw refuse(attributes, `node "${nodeName}" can only ${action} pods with spec.nodeName set to itself`)
}

function checkNode(attributes: AdmissionAttributes, nodeName: string): void {
  const requested = attributes.name || attributes.object?.metadata.name || ''
  if (requested !== nodeName) throw refuse(attributes, `node "${nodeName}" is not allowed to modify node "${requested}"`)
  if (attributes.operation === 'DELETE') throw refuse(attributes, `node "${nodeName}" cannot delete itself`)
  const node = objectOf<Node>(attributes)
  const old = attributes.oldObject as Frozen<Node> | undefined
  const forbiddenLabels = changedLabels(node, old).filter(isForbiddenLabel)
  if (forbiddenLabels.length > 0) throw refuse(attributes, `is not allowed to modify labels: ${forbiddenLabels.sort().join(', ')}`)
  if (attributes.operation === 'UPDATE' && attributes.subresource === '' && JSON.stringify(node.spec.taints ?? []) !== JSON.stringify(old?.spec.taints ?? [])) {
    throw refuse(attributes, `node "${nodeName}" is not allowed to modify taints`)
  }
}

function changedLabels(node: Node, old: Frozen<Node> | undefined): string[] {
  const now = node.metadata.labels ?? {}
  const before = old?.metadata.labels ?? {}
  return [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((key) => now[key] !== before[key])
}

function isForbiddenLabel(key: string): boolean {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
  if (domain === restrictedLabelDomain || domain.endsWith(`.${restrictedLabelDomain}`)) return true
  const isKubernetes = ['kubernetes.io', 'k8s.io'].some((suffix) => domain === suffix || domain.endsWith(`.${suffix}`))
  if (!isKubernetes || allowedKubernetesLabels.has(key)) return false
  return !allowedKubernetesPrefixes.some((prefix) => domain === prefix || domain.endsWith(`.${prefix}`))
}

function checkToken(attributes: AdmissionAttributes, nodeName: string, reader: ObjectReader): void {
  const bound = (attributes.object as (KubeObject & TokenRequest) | undefined)?.spec.boundObjectRef
  if (bound?.kind !== 'Pod' || bound.apiVersion !== 'v1' || !bound.name || !bound.uid) throw refuse(attributes, 'node requested token not bound to a pod')
  const pod = reader.get<Pod>({ group: '', resource: 'pods' }, attributes.namespace, bound.name)
  if (!pod || pod.metadata.uid !== bound.uid) throw refuse(attributes, `node requested token bound to a pod that does not exist: ${bound.name}`)
  if (pod.spec.nodeName !== nodeName) throw refuse(attributes, 'node requested token bound to a pod scheduled on a different node')
}

function checkLease(attributes: AdmissionAttributes, nodeName: string): void {
  if (attributes.namespace !== 'kube-node-lease') throw refuse(attributes, 'can only access leases in the "kube-node-lease" system namespace')
  checkOwnName(attributes, nodeName, 'can only access node lease with the same name as the requesting node')
}

function checkOwnName(attributes: AdmissionAttributes, nodeName: string, why: string): void {
  if ((attributes.name || attributes.object?.metadata.name) !== nodeName) throw refuse(attributes, why)
}
