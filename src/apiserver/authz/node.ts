/**
 * Lets a node read only what its own pods need (L3): secrets, config maps, claims, volumes and tokens by reference, everything else by the node
 * role's rules. Pods are indexed by node; one node's pods are few, so a question walks them instead of keeping a graph of everything.
 * Upstream: plugin/pkg/auth/authorizer/node (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { ResourceSlice } from '#api/gen/types/resource.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { ObjectReader } from '../admission/admission.ts'
import type { UserInfo } from '../request.ts'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from './authorizer.ts'
import { nodeRules } from './bootstrapPolicy/clusterRoles.ts'
import { expandRule } from './bootstrapPolicy/shorthand.ts'
import { ruleAllows } from './rules.ts'

const allow: AuthorizationDecision = { decision: 'allow', reason: '' }
const refuse = (reason: string): AuthorizationDecision => ({ decision: 'noOpinion', reason })

/** The node a kubelet's identity stands for: system:node:<name> in system:nodes. @returns undefined for everybody else. */
export function nodeOf(user: UserInfo): string | undefined {
  const prefix = 'system:node:'
  return user.name.startsWith(prefix) && user.groups.includes('system:nodes') ? user.name.slice(prefix.length) : undefined
}

export function nodeAuthorizer(reader: ObjectReader): Authorizer {
  const podsOf = indexPodsByNode(reader)
  const rules = nodeRules.map(expandRule)
  return {
    name: 'Node',
    authorize(attributes) {
      const node = nodeOf(attributes.user)
      if (node === undefined) return refuse('')
      if (node === '') return refuse(`unknown node for user ${JSON.stringify(attributes.user.name)}`)
      const special = attributes.isResourceRequest ? authorizeSpecial(reader, podsOf(node), node, attributes) : undefined
      return special ?? (rules.some((rule) => ruleAllows(attributes, rule)) ? allow : refuse(''))
    },
    rulesFor(user) {
      if (nodeOf(user) === undefined) return { rules: [], incomplete: false }
      // What a node may do depends on its pods, which no list of rules tells.
      return { rules: [], incomplete: true, error: 'node authorizer does not support user rule resolution' }
    },
  }
}

/** The resources where being a node is not enough; undefined for all others. */
function authorizeSpecial(
  reader: ObjectReader,
  pods: readonly Frozen<Pod>[],
  node: string,
  attributes: AuthorizationAttributes,
): AuthorizationDecision | undefined {
  const { apiGroup, resource, subresource, verb, name, namespace } = attributes
  const related = (allowed: readonly string[], found: () => boolean): AuthorizationDecision => {
    if (!allowed.includes(verb)) return refuse(`can only ${allowed.length > 1 ? 'read' : 'get'} individual resources of this type`)
    if (name === '') return refuse(allowed.length > 1 ? 'can only read namespaced object of this type' : 'No Object name found')
    return found() ? allow : refuse(`no relationship found between node '${node}' and this object`)
  }
  const inNamespace = pods.filter((pod) => pod.metadata.namespace === namespace)
  switch (`${apiGroup}/${resource}`) {
    case '/secrets':
      return subresource ? refuse('cannot get subresource') : related(['get', 'list', 'watch'], () => inNamespace.some((pod) => usesSecret(reader, pod, name)))
    case '/configmaps':
      return subresource
        ? refuse('cannot get subresource')
        : related(['get', 'list', 'watch'], () => inNamespace.some((pod) => references(pod, 'configMap', name)))
    case '/persistentvolumeclaims':
      return related(subresource === 'status' ? ['get', 'update', 'patch'] : ['get'], () => inNamespace.some((pod) => claimsOf(pod).includes(name)))
    case '/persistentvolumes':
      return related(['get'], () => pods.some((pod) => claimsOf(pod).some((claim) => volumeOf(reader, pod, claim) === name)))
    case 'resource.k8s.io/resourceclaims':
      return related(['get'], () => inNamespace.some((pod) => resourceClaimsOf(pod).includes(name)))
    case 'storage.k8s.io/volumeattachments':
      return related(['get'], () => reader.get<VolumeAttachment>({ group: 'storage.k8s.io', resource: 'volumeattachments' }, '', name)?.spec.nodeName === node)
    case '/serviceaccounts':
      if (subresource === '') return related(['get'], () => inNamespace.some((pod) => pod.spec?.serviceAccountName === name))
      if (subresource !== 'token' || verb !== 'create') return refuse('can only create tokens for individual service accounts')
      return inNamespace.some((pod) => pod.spec?.serviceAccountName === name) ? allow : refuse(`no relationship found between node '${node}' and this object`)
    case 'resource.k8s.io/resourceslices':
      return authorizeResourceSlice(reader, attributes, node)
    case 'coordination.k8s.io/leases':
      if (namespace !== 'kube-node-lease') return refuse('can only access leases in the "kube-node-lease" system namespace')
      return ownNamed(attributes, node, 'can only access node lease with the same name as the requesting node')
    case 'storage.k8s.io/csinodes':
      return ownNamed(attributes, node, 'can only access CSINode with the same name as the requesting node')
    case '/nodes':
      return authorizeNode(attributes, node)
    case '/pods':
      return authorizePod(attributes, node, () => inNamespace.some((pod) => pod.metadata.name === name))
    default:
      return undefined
  }
}

/** Reading: only the own Node, which need not exist yet. What a write changes is admission's to look at. */
function authorizeNode({ subresource, verb, name }: AuthorizationAttributes, node: string): AuthorizationDecision {
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : refuse('')
  if (subresource !== '') return refuse('')
  if (verb === 'create' || verb === 'update' || verb === 'patch') return allow
  if (!readVerbs.has(verb)) return refuse('')
  if (name === node) return allow
  const what = name === '' ? 'all nodes' : `'${name}'`
  return refuse(`node '${node}' cannot read ${what}, only its own Node object`)
}

/** Reading: only pods of the node, by name or by a selector that names the node. Mirror pods and evictions are admission's to look at. */
function authorizePod(attributes: AuthorizationAttributes, node: string, isOwn: () => boolean): AuthorizationDecision {
  const { subresource, verb, name, fieldSelector } = attributes
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : refuse('')
  if (subresource === 'eviction') return verb === 'create' ? allow : refuse('')
  if (subresource !== '') return refuse('')
  if (verb === 'create' || verb === 'delete') return allow
  if (!readVerbs.has(verb)) return refuse('')
  if (verb !== 'get' && selectsOwnNode(fieldSelector, node)) return allow
  if (name === '') return refuse(verb === 'get' ? 'No Object name found' : 'can only list/watch pods with spec.nodeName field selector')
  return isOwn() ? allow : refuse(`no relationship found between node '${node}' and this object`)
}

/** Only slices of the node: by name, or many at once by a selector that names the node. What a new slice says is admission's to look at. */
function authorizeResourceSlice(
  reader: ObjectReader,
  { subresource, verb, name, fieldSelector }: AuthorizationAttributes,
  node: string,
): AuthorizationDecision {
  if (subresource !== '') return refuse('cannot authorize ResourceSlice subresources')
  switch (verb) {
    case 'create':
      return allow
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      if (name === '') return refuse('No Object name found')
      return reader.get<ResourceSlice>({ group: 'resource.k8s.io', resource: 'resourceslices' }, '', name)?.spec?.nodeName === node
        ? allow
        : refuse(`no relationship found between node '${node}' and this object`)
    case 'list':
    case 'watch':
    case 'deletecollection':
      return selectsOwnNode(fieldSelector, node) ? allow : refuse('can only list/watch/deletecollection resourceslices with nodeName field selector')
    default:
      return refuse('only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection')
  }
}

function selectsOwnNode(fieldSelector: AuthorizationAttributes['fieldSelector'], node: string): boolean {
  return fieldSelector?.some(({ field, operator, value }) => field === 'spec.nodeName' && operator === '=' && value === node) ?? false
}

const readVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

function ownNamed({ verb, name, subresource }: AuthorizationAttributes, node: string, otherwise: string): AuthorizationDecision {
  if (subresource) return refuse('cannot authorize subresource')
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb)) return refuse('can only get, create, update, patch, or delete this object')
  // The name of something new is in the object, which admission looks at.
  return verb === 'create' || name === node ? allow : refuse(otherwise)
}

function usesSecret(reader: ObjectReader, pod: Frozen<Pod>, name: string): boolean {
  if (references(pod, 'secret', name) || pod.spec?.imagePullSecrets?.some((ref) => ref.name === name)) return true
  return claimsOf(pod).some((claim) => {
    const csi = reader.get<PersistentVolume>({ group: '', resource: 'persistentvolumes' }, '', volumeOf(reader, pod, claim) ?? '')?.spec?.csi
    const refs = [csi?.nodePublishSecretRef, csi?.nodeStageSecretRef, csi?.controllerPublishSecretRef, csi?.nodeExpandSecretRef]
    return refs.some((ref) => ref?.name === name && ref.namespace === pod.metadata.namespace)
  })
}

/** Whether the pod's containers or volumes name the secret or config map. */
function references({ spec }: Frozen<Pod>, kind: 'secret' | 'configMap', name: string): boolean {
  for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])]) {
    const fromAll = container.envFrom?.some((source) => (kind === 'secret' ? source.secretRef : source.configMapRef)?.name === name)
    const fromOne = container.env?.some(({ valueFrom }) => (kind === 'secret' ? valueFrom?.secretKeyRef : valueFrom?.configMapKeyRef)?.name === name)
    if (fromAll || fromOne) return true
  }
  return (spec?.volumes ?? []).some((volume) => {
    if (kind === 'configMap') return volume.configMap?.name === name || volume.projected?.sources?.some((source) => source.configMap?.name === name)
    const others = [volume.cephfs, volume.flexVolume, volume.iscsi, volume.rbd, volume.scaleIO, volume.storageos].some(
      (source) => source?.secretRef?.name === name,
    )
    const files = volume.secret?.secretName === name || volume.azureFile?.secretName === name || volume.csi?.nodePublishSecretRef?.name === name
    return others || files || volume.projected?.sources?.some((source) => source.secret?.name === name)
  })
}

function claimsOf(pod: Frozen<Pod>): string[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return [volume.persistentVolumeClaim.claimName]
    return volume.ephemeral ? [`${pod.metadata.name}-${volume.name}`] : []
  })
}

function volumeOf(reader: ObjectReader, pod: Frozen<Pod>, claim: string): string | undefined {
  return reader.get<PersistentVolumeClaim>({ group: '', resource: 'persistentvolumeclaims' }, pod.metadata.namespace ?? '', claim)?.spec?.volumeName
}

function resourceClaimsOf(pod: Frozen<Pod>): string[] {
  const direct = (pod.spec?.resourceClaims ?? []).flatMap((claim) => (claim.resourceClaimName ? [claim.resourceClaimName] : []))
  return [...direct, ...(pod.status?.resourceClaimStatuses ?? []).flatMap((status) => (status.resourceClaimName ? [status.resourceClaimName] : []))]
}

function indexPodsByNode(reader: ObjectReader): (node: string) => readonly Frozen<Pod>[] {
  const byNode = new Map<string, Map<string, Frozen<Pod>>>()
  const nodeByPod = new Map<string, string>()
  const set = (pod: Frozen<Pod>, present: boolean) => {
    const key = keyOf(pod)
    const before = nodeByPod.get(key)
    const node = present ? (pod.spec?.nodeName ?? '') : ''
    if (before !== undefined && before !== node) {
      byNode.get(before)?.delete(key)
      if (byNode.get(before)?.size === 0) byNode.delete(before)
      nodeByPod.delete(key)
    }
    if (node === '') return
    nodeByPod.set(key, node)
    byNode.set(node, (byNode.get(node) ?? new Map<string, Frozen<Pod>>()).set(key, pod))
  }
  const pods = { group: '', resource: 'pods' }
  reader.onChange<Pod>(pods, ({ type, object }) => set(object, type !== 'DELETED'))
  for (const pod of reader.list<Pod>(pods)) set(pod, true)
  return (node) => [...(byNode.get(node)?.values() ?? [])]
}
