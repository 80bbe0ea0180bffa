/**
 * Relates objects to nodes (L3): secrets, config maps, claims, accounts and resource claims through the pods that run there, volumes through claims,
 * secrets of volumes through both. Updated on changes, so that a query is a look-up, however many pods there are.
 * Upstream: plugin/pkg/auth/authorizer/node/{graph,graph_populator}.go (v1.36), which keeps vertices and edges.
 */
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { PersistentVolume, Pod } from '#api/gen/types/core.v1'
import type { ResourceSlice } from '#api/gen/types/resource.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { persistentVolumeSecrets, podClaimNames, podConfigMapNames, podResourceClaimNames, podSecretNames } from '#api/helpers/objectReferences'
import { isMirrorPod } from '#api/helpers/pods'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { ObjectReader } from '../core/objectReader.ts'

export type RelatedKind =
  | 'configmap'
  | 'persistentvolume'
  | 'persistentvolumeclaim'
  | 'pod'
  | 'podcertificaterequest'
  | 'resourceclaim'
  | 'resourceslice'
  | 'secret'
  | 'serviceaccount'
  | 'volumeattachment'

export interface NodeGraph {
  /** Whether the object is related to the node. @param namespace empty for cluster-scoped objects */
  isRelated(node: string, kind: RelatedKind, namespace: string, name: string): boolean
}

const idOf = (kind: RelatedKind, namespace: string, name: string): string => `${kind}/${namespace}/${name}`

export function createNodeGraph(reader: ObjectReader): NodeGraph {
  const pods = new PodRelations()
  const volumes = new VolumeRelations()
  const attachments = new Map<string, string>()
  const slices = new Map<string, string>()
  const certificateRequests = new Map<string, string>()
  follow<Pod>(reader, { group: '', resource: 'pods' }, (pod, isThere, old) => pods.set(pod, isThere, old))
  follow<PersistentVolume>(reader, { group: '', resource: 'persistentvolumes' }, (volume, isThere) => volumes.set(volume, isThere))
  follow<VolumeAttachment>(reader, { group: 'storage.k8s.io', resource: 'volumeattachments' }, keepNode(attachments))
  follow<ResourceSlice>(reader, { group: 'resource.k8s.io', resource: 'resourceslices' }, keepNode(slices))
  if (reader.ofKind?.('certificates.k8s.io/v1beta1', 'PodCertificateRequest'))
    follow<PodCertificateRequest>(reader, { group: 'certificates.k8s.io', resource: 'podcertificaterequests' }, keepNode(certificateRequests))
  return {
    isRelated(node, kind, namespace, name) {
      switch (kind) {
        case 'pod':
          return pods.nodeOf(namespace, name) === node
        case 'volumeattachment':
          return attachments.get(name) === node
        case 'resourceslice':
          return slices.get(name) === node
        case 'podcertificaterequest':
          return certificateRequests.get(`${namespace}/${name}`) === node
        case 'persistentvolume': {
          const claim = volumes.claimOf(name)
          return claim !== undefined && pods.areOn(node, claim)
        }
        case 'secret':
          return pods.areOn(node, idOf(kind, namespace, name)) || volumes.claimsOfSecret(namespace, name).some((claim) => pods.areOn(node, claim))
        default:
          return pods.areOn(node, idOf(kind, namespace, name))
      }
    },
  }
}

function follow<T extends KubeObject>(
  reader: ObjectReader,
  resource: { readonly group: string; readonly resource: string },
  set: (object: Frozen<T>, isThere: boolean, old?: Frozen<T>) => void,
): void {
  reader.onChange<T>(resource, ({ type, object, old }) => set(object, type !== 'DELETED', old))
  for (const object of reader.list<T>(resource)) set(object, true)
}

function keepNode(nodes: Map<string, string>) {
  return (object: Frozen<KubeObject & { spec?: { nodeName?: string | undefined } | undefined }>, isThere: boolean): void => {
    const key = keyOf(object)
    if (isThere && object.spec?.nodeName) nodes.set(key, object.spec.nodeName)
    else nodes.delete(key)
  }
}

/** The nodes of pods, and the number of pods on each node that need an object. */
class PodRelations {
  readonly #nodes = new Map<string, Map<string, number>>()
  readonly #known = new Map<string, { readonly node: string; readonly ids: readonly string[] }>()

  nodeOf(namespace: string, name: string): string | undefined {
    return this.#known.get(`${namespace}/${name}`)?.node
  }

  areOn(node: string, id: string): boolean {
    return this.#nodes.get(id)?.has(node) ?? false
  }

  set(pod: Frozen<Pod>, isThere: boolean, old: Frozen<Pod> | undefined): void {
    const node = pod.spec?.nodeName ?? ''
    const key = keyOf(pod)
    const before = this.#known.get(key)
    if (!before && node === '') return
    if (isThere && old && isSame(pod, old)) return
    if (before) {
      for (const id of before.ids) this.#count(id, before.node, -1)
      this.#known.delete(key)
    }
    if (!isThere || node === '') return
    const ids = relationsOf(pod)
    for (const id of ids) this.#count(id, node, 1)
    this.#known.set(key, { node, ids })
  }

  #count(id: string, node: string, by: number): void {
    let nodes = this.#nodes.get(id)
    if (!nodes) {
      nodes = new Map()
      this.#nodes.set(id, nodes)
    }
    const count = (nodes.get(node) ?? 0) + by
    if (count > 0) nodes.set(node, count)
    else nodes.delete(node)
    if (nodes.size === 0) this.#nodes.delete(id)
  }
}

/** After binding, only ephemeral containers and generated claims change the objects that a pod names. */
function isSame(pod: Frozen<Pod>, old: Frozen<Pod>): boolean {
  return (
    pod.metadata.uid === old.metadata.uid &&
    pod.spec?.nodeName === old.spec?.nodeName &&
    pod.spec?.ephemeralContainers?.length === old.spec?.ephemeralContainers?.length &&
    podResourceClaimNames(pod).join() === podResourceClaimNames(old).join()
  )
}

/** The objects that a pod names, without duplicates. A mirror pod gives access only to itself, since nodes create it. */
function relationsOf(pod: Frozen<Pod>): readonly string[] {
  if (isMirrorPod(pod)) return []
  const { namespace = '' } = pod.metadata
  const ids = new Set<string>()
  const add = (kind: RelatedKind, names: readonly string[]) => {
    for (const name of names) ids.add(idOf(kind, namespace, name))
  }
  if (pod.spec?.serviceAccountName) ids.add(idOf('serviceaccount', namespace, pod.spec.serviceAccountName))
  add('secret', podSecretNames(pod))
  add('configmap', podConfigMapNames(pod))
  add('persistentvolumeclaim', podClaimNames(pod))
  add('resourceclaim', podResourceClaimNames(pod))
  return [...ids]
}

const noClaims: readonly string[] = []

/** The claims that volumes are bound to, by the volume and by its secrets. */
class VolumeRelations {
  readonly #known = new Map<string, { readonly claim: string; readonly secrets: readonly string[] }>()
  readonly #bySecret = new Map<string, Map<string, string>>()

  claimOf(name: string): string | undefined {
    return this.#known.get(name)?.claim
  }

  claimsOfSecret(namespace: string, name: string): readonly string[] {
    const claims = this.#bySecret.get(`${namespace}/${name}`)
    return claims ? [...claims.values()] : noClaims
  }

  set(volume: Frozen<PersistentVolume>, isThere: boolean): void {
    const { name = '' } = volume.metadata
    for (const secret of this.#known.get(name)?.secrets ?? []) {
      const claims = this.#bySecret.get(secret)
      claims?.delete(name)
      if (claims?.size === 0) this.#bySecret.delete(secret)
    }
    this.#known.delete(name)
    const bound = volume.spec?.claimRef
    if (!isThere || !bound) return
    const claim = idOf('persistentvolumeclaim', bound.namespace ?? '', bound.name ?? '')
    const secrets = persistentVolumeSecrets(volume).map((one) => `${one.namespace}/${one.name}`)
    this.#known.set(name, { claim, secrets })
    for (const secret of secrets) this.#bySecret.set(secret, (this.#bySecret.get(secret) ?? new Map<string, string>()).set(name, claim))
  }
}
