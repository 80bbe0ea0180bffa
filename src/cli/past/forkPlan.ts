/**
 * What a fork copies of a cluster's past (L4, pure): which objects belong to the old cluster itself and stay behind, in which order the others are created, and
 * what of them is the server's, not the user's.
 */
import { mutableCopy } from '#base/frozen'
import { type Kind, nameOf, type PastObject } from './objects.ts'

/** Kinds whose objects a cluster makes for itself, or which name its machines, networks and disks. */
const ownKinds: ReadonlySet<string> = new Set([
  'apiservices.apiregistration.k8s.io',
  'bindings',
  'certificatesigningrequests.certificates.k8s.io',
  'componentstatuses',
  'csinodes.storage.k8s.io',
  'csistoragecapacities.storage.k8s.io',
  'endpoints',
  'endpointslices.discovery.k8s.io',
  'events',
  'events.events.k8s.io',
  'ipaddresses.networking.k8s.io',
  'leasecandidates.coordination.k8s.io',
  'leases.coordination.k8s.io',
  'nodes',
  'persistentvolumes',
  'resourceslices.resource.k8s.io',
  'servicecidrs.networking.k8s.io',
  'storageversions.internal.apiserver.k8s.io',
  'volumeattachments.storage.k8s.io',
])

/** Dependents come before their owners, so that a controller finds what it would otherwise make again. */
const order: readonly (readonly string[])[] = [
  ['namespaces', 'customresourcedefinitions.apiextensions.k8s.io'],
  ['priorityclasses.scheduling.k8s.io', 'storageclasses.storage.k8s.io', 'runtimeclasses.node.k8s.io', 'serviceaccounts', 'configmaps', 'secrets'],
  ['clusterroles.rbac.authorization.k8s.io', 'roles.rbac.authorization.k8s.io'],
  ['clusterrolebindings.rbac.authorization.k8s.io', 'rolebindings.rbac.authorization.k8s.io'],
  ['persistentvolumeclaims', 'services'],
  ['pods'],
  ['controllerrevisions.apps', 'replicasets.apps', 'replicationcontrollers', 'jobs.batch'],
]
/** Their programs run nowhere in the fork, or serve the old cluster. */
const webhookKinds: ReadonlySet<string> = new Set([
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
])
const last: ReadonlySet<string> = new Set([
  'limitranges',
  'resourcequotas',
  'poddisruptionbudgets.policy',
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
])

/** The kinds to copy, in the order of their creation. @param included kinds that are copied although a cluster makes their objects for itself */
export function kindsToCopy(kinds: readonly Kind[], included: ReadonlySet<string> = new Set()): readonly Kind[] {
  const rank = (kind: Kind) => {
    const name = nameOf(kind)
    const at = order.findIndex((names) => names.includes(name))
    return at >= 0 ? at : order.length + (webhookKinds.has(name) ? 2 : last.has(name) ? 1 : 0)
  }
  return kinds
    .filter((kind) => (!ownKinds.has(nameOf(kind)) || included.has(nameOf(kind))) && kind.verbs.includes('create'))
    .toSorted((a, b) => rank(a) - rank(b))
}

export const kindsLeftOut = (kinds: readonly Kind[]): readonly string[] => kinds.map(nameOf).filter((name) => ownKinds.has(name))

export interface Owner {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean | undefined
}

export const ownersOf = ({ metadata }: PastObject): readonly Owner[] => (metadata.ownerReferences ?? []) as readonly Owner[]

/** Why an object is not copied; undefined: it is. */
export function reasonToLeave(kind: Kind, object: PastObject): string | undefined {
  const name = nameOf(kind)
  if (webhookKinds.has(name)) return 'calling programs outside of the fork'
  if (bindingKinds.has(name) && isForAnyone(object)) return 'rights of users without a name'
  return reasonToStay(kind, object)
}

const bindingKinds: ReadonlySet<string> = new Set(['clusterrolebindings.rbac.authorization.k8s.io', 'rolebindings.rbac.authorization.k8s.io'])

/** The fork listens on this machine, and the objects may come from someone else's file. Its own bootstrap bindings are there already. */
function isForAnyone({ subjects = [] }: PastObject & { readonly subjects?: readonly { readonly name?: string }[] }): boolean {
  return subjects.some(({ name }) => name === 'system:anonymous' || name === 'system:unauthenticated')
}

/** Why an object belongs to its cluster; undefined: it does not. */
export function reasonToStay(kind: Kind, object: PastObject): string | undefined {
  const name = nameOf(kind)
  if (object.metadata.deletionTimestamp) return 'being deleted'
  if (name === 'configmaps' && object.metadata.name === 'kube-root-ca.crt') return 'authority of the old cluster'
  if (name === 'secrets' && /^(kubernetes\.io\/service-account-token|bootstrap\.kubernetes\.io\/token)$/.test(String(object.type)))
    return 'credentials of the old cluster'
  if (name === 'services' && keyIs(object, 'default', 'kubernetes')) return "Service of the old cluster's API"
  if (name === 'jobs.batch' && conditionsOf(object).some(({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True'))
    return 'finished'
  if (name !== 'pods') return undefined
  if (['Succeeded', 'Failed'].includes((object.status as { phase?: string } | undefined)?.phase ?? '')) return 'finished'
  const owner = ownersOf(object).find(({ kind: ownerKind }) => ['Node', 'DaemonSet', 'Job'].includes(ownerKind))
  return owner && `made again by its ${owner.kind}`
}

const keyIs = ({ metadata }: PastObject, namespace: string, name: string) => metadata.namespace === namespace && metadata.name === name

function conditionsOf(object: PastObject): readonly { readonly type?: string; readonly status?: string }[] {
  return ((object.status as { conditions?: unknown } | undefined)?.conditions ?? []) as readonly { type?: string; status?: string }[]
}

/** Fields of the metadata that the user may set; owners are set when all objects are there and have their new UIDs. */
const keptMetadata = ['name', 'namespace', 'labels', 'annotations', 'finalizers'] as const

export type Draft = Record<string, unknown> & {
  metadata: Record<string, unknown> & { name?: string; namespace?: string }
  spec?: Record<string, unknown>
}

/** The copy of an object in a fork. */
export function copyOf(kind: Kind, object: PastObject): Draft {
  const draft = portableOf(kind, object)
  // A webhook would convert with a program outside of the fork.
  if (nameOf(kind) === 'customresourcedefinitions.apiextensions.k8s.io') without(draft.spec, 'conversion')
  return draft
}

/** The object as a user would create it in another cluster. */
export function portableOf(kind: Kind, object: PastObject): Draft {
  const { status: _, ...rest } = mutableCopy(object) as Draft
  const metadata = Object.fromEntries(keptMetadata.flatMap((field) => (rest.metadata[field] === undefined ? [] : [[field, rest.metadata[field]]])))
  const draft: Draft = { ...rest, metadata }
  clean[nameOf(kind)]?.(draft)
  return draft
}

function without(fields: Record<string, unknown> | undefined, ...names: readonly string[]): void {
  for (const name of names) if (fields) delete fields[name]
}

const clean: Readonly<Record<string, (draft: Draft) => void>> = Object.assign(Object.create(null), {
  /** The scheduler of the other cluster places it. Ephemeral containers are added to pods that exist. */
  pods: ({ spec }: Draft) => without(spec, 'nodeName', 'ephemeralContainers'),
  namespaces: (draft: Draft) => {
    without(draft.spec, 'finalizers')
    without(draft.metadata, 'finalizers')
  },
  /** Addresses and ports are the other cluster's. */
  services: ({ spec }: Draft) => {
    if (spec?.clusterIP !== 'None') without(spec, 'clusterIP', 'clusterIPs')
    without(spec, 'healthCheckNodePort', 'ipFamilies')
    for (const port of (spec?.ports ?? []) as Record<string, unknown>[]) without(port, 'nodePort')
  },
  /** The other cluster makes its volumes. */
  persistentvolumeclaims: ({ spec, metadata }: Draft) => {
    without(spec, 'volumeName')
    const annotations = metadata.annotations as Record<string, unknown> | undefined
    for (const name of Object.keys(annotations ?? {})) if (/^(pv|volume(\.beta)?)\.kubernetes\.io\//.test(name)) without(annotations, name)
    without(metadata, 'finalizers')
  },
  /** The selector of a Job is made from its UID. */
  'jobs.batch': ({ spec, metadata }: Draft) => {
    if (spec?.manualSelector === true) return
    without(spec, 'selector')
    const template = spec?.template as { metadata?: { labels?: Record<string, unknown> } } | undefined
    for (const labels of [template?.metadata?.labels, metadata.labels as Record<string, unknown> | undefined]) {
      without(labels, 'controller-uid', 'batch.kubernetes.io/controller-uid', 'job-name', 'batch.kubernetes.io/job-name')
    }
  },
})
