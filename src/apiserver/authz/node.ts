/**
 * Lets a node read only what its own pods need (L3): secrets, config maps, claims, volumes and tokens by relation, itself and its pods by name or
 * selector, everything else by the node role's rules. Upstream: plugin/pkg/auth/authorizer/node/node_authorizer.go (v1.36).
 */
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from './authorizer.ts'
import { nodeRules } from './bootstrapPolicy/clusterRoles.ts'
import { gatedPolicy } from './bootstrapPolicy/gatedRoles.ts'
import { expandRule } from './bootstrapPolicy/shorthand.ts'
import { createNodeGraph, type NodeGraph, type RelatedKind } from './nodeGraph.ts'
import { ruleAllows } from './rules.ts'

const allow: AuthorizationDecision = { decision: 'allow', reason: '' }
const noOpinion: AuthorizationDecision = { decision: 'noOpinion', reason: '' }
const refuse = (reason: string): AuthorizationDecision => ({ decision: 'noOpinion', reason })

/** The node a kubelet's identity stands for: system:node:<name> in system:nodes. @returns undefined for all other users. */
export function nodeOf(user: UserInfo): string | undefined {
  const prefix = 'system:node:'
  return user.name.startsWith(prefix) && user.groups.includes('system:nodes') ? user.name.slice(prefix.length) : undefined
}

/** @param gates values of --feature-gates; absent gates have their default of v1.36 */
export function nodeAuthorizer(reader: ObjectReader, gates: FeatureGateSettings = {}): Authorizer {
  const graph = createNodeGraph(reader)
  const rules = [...nodeRules, ...gatedPolicy(gates).nodeRules].map(expandRule)
  const special: Readonly<Record<string, Decide>> = featureEnabled(gates, certificateGate)
    ? { ...byResource, [certificateRequests]: authorizeCertificateRequest }
    : byResource
  return {
    name: 'Node',
    authorize(attributes) {
      const node = nodeOf(attributes.user)
      if (node === undefined) return noOpinion
      if (node === '') return refuse(`unknown node for user ${JSON.stringify(attributes.user.name)}`)
      const decide = attributes.isResourceRequest ? special[`${attributes.apiGroup}/${attributes.resource}`] : undefined
      if (decide) return decide(attributes, node, graph)
      return rules.some((rule) => ruleAllows(attributes, rule)) ? allow : noOpinion
    },
    rulesFor(user) {
      if (nodeOf(user) === undefined) return { rules: [], incomplete: false }
      // What a node may do depends on its pods, which no list of rules tells.
      return { rules: [], incomplete: true, error: 'node authorizer does not support user rule resolution' }
    },
  }
}

type Decide = (attributes: AuthorizationAttributes, node: string, graph: NodeGraph) => AuthorizationDecision

/** Resources for which the decision depends on the node. */
const byResource: Readonly<Record<string, Decide>> = {
  '/secrets': (attributes, node, graph) => readNamespaced('secret', attributes, node, graph),
  '/configmaps': (attributes, node, graph) => readNamespaced('configmap', attributes, node, graph),
  '/persistentvolumeclaims': (attributes, node, graph) =>
    attributes.subresource === 'status' ? updateClaimStatus(attributes, node, graph) : getOne('persistentvolumeclaim', attributes, node, graph),
  '/persistentvolumes': (attributes, node, graph) => getOne('persistentvolume', attributes, node, graph),
  'resource.k8s.io/resourceclaims': (attributes, node, graph) => getOne('resourceclaim', attributes, node, graph),
  'storage.k8s.io/volumeattachments': (attributes, node, graph) => getOne('volumeattachment', attributes, node, graph),
  '/serviceaccounts': authorizeServiceAccount,
  'coordination.k8s.io/leases': authorizeLease,
  'storage.k8s.io/csinodes': authorizeCsiNode,
  'resource.k8s.io/resourceslices': authorizeResourceSlice,
  '/nodes': authorizeNode,
  '/pods': authorizePod,
}

const readVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

function related(kind: RelatedKind, { namespace, name }: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  if (name === '') return refuse('No Object name found')
  return graph.isRelated(node, kind, namespace, name) ? allow : unrelated(node)
}

const unrelated = (node: string): AuthorizationDecision => refuse(`no relationship found between node '${node}' and this object`)

function getOne(kind: RelatedKind, attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  if (attributes.verb !== 'get') return refuse('can only get individual resources of this type')
  return attributes.subresource === '' ? related(kind, attributes, node, graph) : refuse('cannot get subresource')
}

function readNamespaced(kind: RelatedKind, attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  if (!readVerbs.has(attributes.verb)) return refuse('can only read resources of this type')
  if (attributes.subresource !== '') return refuse('cannot read subresource')
  return attributes.namespace === '' ? refuse('can only read namespaced object of this type') : related(kind, attributes, node, graph)
}

function updateClaimStatus(attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  if (attributes.verb !== 'update' && attributes.verb !== 'patch') return refuse('can only get/update/patch this type')
  return related('persistentvolumeclaim', attributes, node, graph)
}

/** Tokens for its pods, and the accounts themselves, whose annotations credential providers for images get. */
function authorizeServiceAccount(attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  const { verb, subresource, namespace, name } = attributes
  if (verb === 'get' && subresource === '') return related('serviceaccount', attributes, node, graph)
  if (verb !== 'create' || name === '') return refuse('can only create tokens for individual service accounts')
  if (subresource !== 'token') return refuse('can only create token subresource of serviceaccount')
  return graph.isRelated(node, 'serviceaccount', namespace, name) ? allow : unrelated(node)
}

const ownVerbs: ReadonlySet<string> = new Set(['get', 'create', 'update', 'patch', 'delete'])

/** A create has its name only in the object, which admission checks. */
function authorizeLease({ verb, namespace, name }: AuthorizationAttributes, node: string): AuthorizationDecision {
  if (!ownVerbs.has(verb)) return refuse('can only get, create, update, patch, or delete a node lease')
  if (namespace !== 'kube-node-lease') return refuse('can only access leases in the "kube-node-lease" system namespace')
  return verb === 'create' || name === node ? allow : refuse('can only access node lease with the same name as the requesting node')
}

function authorizeCsiNode({ verb, subresource, name }: AuthorizationAttributes, node: string): AuthorizationDecision {
  if (!ownVerbs.has(verb)) return refuse('can only get, create, update, patch, or delete a CSINode')
  if (subresource !== '') return refuse('cannot authorize CSINode subresources')
  return verb === 'create' || name === node ? allow : refuse('can only access CSINode with the same name as the requesting node')
}

/** Only slices of the node: by name, or many at once by a selector that names the node. Admission checks the node of a new slice. */
function authorizeResourceSlice(attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  if (attributes.subresource !== '') return refuse('cannot authorize ResourceSlice subresources')
  switch (attributes.verb) {
    case 'create':
      return allow
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      return related('resourceslice', attributes, node, graph)
    case 'list':
    case 'watch':
    case 'deletecollection':
      return selects(attributes, 'spec.nodeName', node) ? allow : refuse('can only list/watch/deletecollection resourceslices with nodeName field selector')
    default:
      return refuse('only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection')
  }
}

const certificateGate = 'PodCertificateRequest'
const certificateRequests = 'certificates.k8s.io/podcertificaterequests'

/** Requests of the node itself. Admission checks the node, the pod and the service account that a new one names. */
function authorizeCertificateRequest(attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  const { subresource, verb } = attributes
  if (subresource !== '') return refuse('nodes may not access the status subresource of PodCertificateRequests')
  if (verb === 'create') return allow
  if (verb === 'get') return related('podcertificaterequest', attributes, node, graph)
  if (verb !== 'list' && verb !== 'watch') return refuse(`nodes may not ${verb} podcertificaterequests`)
  return selects(attributes, 'spec.nodeName', node) ? allow : refuse('can only list/watch podcertificaterequests with nodeName field selector')
}

/** Reading: only the node's own Node object, which need not exist yet. Admission checks the changes of a write. */
function authorizeNode({ subresource, verb, name }: AuthorizationAttributes, node: string): AuthorizationDecision {
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : noOpinion
  if (subresource !== '') return noOpinion
  if (verb === 'create' || verb === 'update' || verb === 'patch') return allow
  if (!readVerbs.has(verb)) return noOpinion
  if (name === node) return allow
  return refuse(`node '${node}' cannot read ${name === '' ? 'all nodes' : `'${name}'`}, only its own Node object`)
}

/** Reading: only pods of the node, by name or by a selector that names the node. Admission checks mirror pods and evictions. */
function authorizePod(attributes: AuthorizationAttributes, node: string, graph: NodeGraph): AuthorizationDecision {
  const { subresource, verb, name } = attributes
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : noOpinion
  if (subresource === 'eviction') return verb === 'create' ? allow : noOpinion
  if (subresource !== '') return noOpinion
  if (verb === 'create' || verb === 'delete') return allow
  if (verb === 'get') return related('pod', attributes, node, graph)
  if (verb !== 'list' && verb !== 'watch') return noOpinion
  if (selects(attributes, 'spec.nodeName', node)) return allow
  return name === '' ? refuse('can only list/watch pods with spec.nodeName field selector') : related('pod', attributes, node, graph)
}

function selects({ fieldSelector }: AuthorizationAttributes, field: string, node: string): boolean {
  return fieldSelector?.some((term) => term.field === field && term.operator === '=' && term.value === node) ?? false
}
