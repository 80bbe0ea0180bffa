/**
 * What an export takes of a cluster (L4, pure): what users made. What each cluster makes for itself, and what controllers make from other objects, stays, unless it is
 * asked for by its kind.
 */
import { type Draft, kindsToCopy, ownersOf, portableOf, reasonToStay } from '../past/forkPlan.ts'
import { type Kind, nameOf, type PastObject } from '../past/objects.ts'

export interface ExportChoice {
  /** Empty: all, and objects without a namespace. */
  readonly namespaces: ReadonlySet<string>
  /** Kinds of which all objects are taken, as `nameOf` names them. */
  readonly included: ReadonlySet<string>
}

/** The kinds to export, in the order of their creation. */
export function kindsToExport(kinds: readonly Kind[], { namespaces, included }: ExportChoice): readonly Kind[] {
  const isWanted = (kind: Kind) => namespaces.size === 0 || kind.namespaced || nameOf(kind) === 'namespaces' || included.has(nameOf(kind))
  return kindsToCopy(kinds, included).filter(isWanted)
}

/** Whether an object is in the chosen namespaces, or is one. */
export function isChosen({ namespaces }: ExportChoice, kind: Kind, { metadata }: PastObject): boolean {
  if (namespaces.size === 0) return true
  if (nameOf(kind) === 'namespaces') return namespaces.has(metadata.name ?? '')
  return !kind.namespaced || namespaces.has(metadata.namespace ?? '')
}

const systemNamespaces: ReadonlySet<string> = new Set(['default', 'kube-node-lease', 'kube-public', 'kube-system'])
const systemConfigMaps: ReadonlySet<string> = new Set([
  'kube-public/cluster-info',
  'kube-system/extension-apiserver-authentication',
  'kube-system/kube-apiserver-legacy-service-account-token-tracking',
  'kube-system/kubeadm-config',
  'kube-system/kubelet-config',
])
/** Prefixes of the names that a cluster's own roles and bindings have. */
const systemRole = /^(kubeadm|skiff|system):/
/** Their objects are made again by an owner of these groups. */
const madeByControllers: ReadonlySet<string> = new Set(['controllerrevisions.apps', 'jobs.batch', 'pods', 'replicasets.apps', 'replicationcontrollers'])
const controllerGroups: ReadonlySet<string> = new Set(['v1', 'apps/v1', 'batch/v1'])

/** Why an object is left out; undefined: it is exported. */
export function reasonToLeaveOut({ included }: ExportChoice, kind: Kind, object: PastObject): string | undefined {
  const name = nameOf(kind)
  if (included.has(name)) return undefined
  const reason = reasonToStay(kind, object)
  if (reason !== undefined) return reason
  if (isOfEachCluster(name, object) || isPlainDefaultAccount(kind, object)) return 'made by each cluster for itself'
  const owner = ownersOf(object).find(({ apiVersion, controller }) => controller === true && controllerGroups.has(apiVersion))
  return owner && madeByControllers.has(name) ? `made again by its ${owner.kind}` : undefined
}

function isOfEachCluster(kind: string, object: PastObject): boolean {
  const { name = '', namespace = '', labels = {}, annotations = {} } = object.metadata
  if (kind.endsWith('.rbac.authorization.k8s.io') && systemRole.test(name)) return true
  if (labels['kubernetes.io/bootstrapping'] === 'rbac-defaults' || annotations['apf.kubernetes.io/autoupdate-spec'] === 'true') return true
  switch (kind) {
    case 'namespaces':
      return systemNamespaces.has(name)
    case 'configmaps':
      return systemConfigMaps.has(`${namespace}/${name}`)
    case 'storageclasses.storage.k8s.io':
      return object.provisioner === 'skiff.dev/local-path'
    case 'priorityclasses.scheduling.k8s.io':
      return name.startsWith('system-')
    default:
      return false
  }
}

/** A default ServiceAccount as each namespace gets it, without what a user may have added. */
function isPlainDefaultAccount(kind: Kind, object: PastObject): boolean {
  const { metadata } = object
  const added = [object.imagePullSecrets, object.secrets, object.automountServiceAccountToken, metadata.labels, metadata.annotations]
  return nameOf(kind) === 'serviceaccounts' && metadata.name === 'default' && added.every((one) => one === undefined)
}

/** The exported form: as a user would create it, and with the UIDs by which an import finds owners. */
export function exportedOf(kind: Kind, object: PastObject): Draft {
  const { apiVersion, kind: name, metadata, ...rest } = portableOf(kind, object)
  const owners = ownersOf(object)
  return { apiVersion, kind: name, metadata: { ...metadata, uid: object.metadata.uid, ...(owners.length > 0 ? { ownerReferences: owners } : {}) }, ...rest }
}
