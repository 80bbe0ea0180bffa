/**
 * The ownership graph over all kinds (L3). Pure state: observed objects, and virtual owners that dependents name but no event has shown.
 * Upstream: pkg/controller/garbagecollector/graph.go, graph_builder.go (v1.36).
 */
import type { Frozen, KubeObject, OwnerReference } from '#api/machinery/meta'

export interface GraphNode {
  readonly uid: string
  apiVersion: string
  kind: string
  namespace: string | undefined
  name: string
  owners: readonly Readonly<OwnerReference>[]
  readonly dependents: Map<string, GraphNode>
  /** Named by a dependent, never seen: must be looked up before anything is concluded from its absence. */
  virtual: boolean
  /** Being deleted in the foreground: waits for the dependents that block it. */
  deletingDependents: boolean
  beingDeleted: boolean
}

export interface GraphChange {
  /** Objects whose owners may be gone, or whose deletion must continue. */
  readonly attemptToDelete: Set<GraphNode>
  readonly attemptToOrphan: Set<GraphNode>
  /** Dependents that name an owner which lives in another namespace: it cannot own them. */
  readonly invalid: { readonly dependent: GraphNode; readonly ownerUid: string }[]
}

export const foregroundFinalizer = 'foregroundDeletion'
export const orphanFinalizer = 'orphan'

export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>()

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid)
  }

  get size(): number {
    return this.#nodes.size
  }

  virtualNodes(): GraphNode[] {
    return [...this.#nodes.values()].filter(({ virtual }) => virtual)
  }

  /** True when every owner has been seen, where it must be, and none takes its dependents along. */
  isOwned(node: GraphNode): boolean {
    return node.owners.every(({ uid }) => {
      const owner = this.#nodes.get(uid)
      const reachable = owner && (owner.namespace === undefined || owner.namespace === node.namespace)
      return reachable && !owner.virtual && !owner.deletingDependents
    })
  }

  /** An object was added or changed. */
  observe(object: Frozen<KubeObject>): GraphChange {
    const change: GraphChange = { attemptToDelete: new Set(), attemptToOrphan: new Set(), invalid: [] }
    const { uid = '', name = '', namespace, ownerReferences = [], deletionTimestamp, finalizers = [] } = object.metadata
    const there = this.#nodes.get(uid)
    const node = there ?? this.#make(uid)
    const before = there?.owners ?? []
    const wasDeleting = node.beingDeleted
    const wasVirtual = there?.virtual === true
    node.virtual = false
    node.apiVersion = object.apiVersion
    node.kind = object.kind
    node.name = name
    node.namespace = namespace
    node.owners = ownerReferences
    node.beingDeleted = deletionTimestamp !== undefined
    this.#link(node, before, change)
    for (const dependent of wasVirtual ? node.dependents.values() : []) {
      if (isElsewhere(node, dependent)) change.invalid.push({ dependent, ownerUid: uid })
      // It was taken for what its dependents said it was.
      if (isElsewhere(node, dependent)) change.attemptToDelete.add(dependent)
    }
    if (node.beingDeleted && finalizers.includes(orphanFinalizer) && (!wasDeleting || !there)) change.attemptToOrphan.add(node)
    if (node.beingDeleted && finalizers.includes(foregroundFinalizer)) {
      if (!node.deletingDependents) {
        node.deletingDependents = true
        for (const dependent of node.dependents.values()) change.attemptToDelete.add(dependent)
      }
      change.attemptToDelete.add(node)
    }
    return change
  }

  /** An object is gone, for certain. */
  remove(uid: string): GraphChange {
    const change: GraphChange = { attemptToDelete: new Set(), attemptToOrphan: new Set(), invalid: [] }
    const node = this.#nodes.get(uid)
    if (!node) return change
    this.#nodes.delete(uid)
    node.dependents.delete(uid)
    for (const { uid: ownerUid } of node.owners) this.#unlink(node, ownerUid, change)
    for (const dependent of node.dependents.values()) change.attemptToDelete.add(dependent)
    // Dependents that still name it will make it again as a virtual node when they change; until then they are enough.
    if (node.dependents.size > 0) {
      const absent = this.#make(uid)
      Object.assign(absent, { apiVersion: node.apiVersion, kind: node.kind, name: node.name, namespace: node.namespace, virtual: true })
      for (const dependent of node.dependents.values()) absent.dependents.set(dependent.uid, dependent)
    }
    return change
  }

  #make(uid: string): GraphNode {
    const node: GraphNode = {
      uid,
      apiVersion: '',
      kind: '',
      namespace: undefined,
      name: '',
      owners: [],
      dependents: new Map(),
      virtual: true,
      deletingDependents: false,
      beingDeleted: false,
    }
    this.#nodes.set(uid, node)
    return node
  }

  #link(node: GraphNode, before: readonly Readonly<OwnerReference>[], change: GraphChange): void {
    const after = new Map(node.owners.map((owner) => [owner.uid, owner]))
    for (const { uid, blockOwnerDeletion } of before) {
      const now = after.get(uid)
      if (!now) this.#unlink(node, uid, change)
      else if (blockOwnerDeletion && !now.blockOwnerDeletion) this.#retryForeground(uid, change)
    }
    for (const owner of node.owners) {
      let ownerNode = this.#nodes.get(owner.uid)
      if (!ownerNode) {
        ownerNode = this.#make(owner.uid)
        Object.assign(ownerNode, { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, namespace: node.namespace })
      }
      if (!ownerNode.dependents.has(node.uid)) {
        ownerNode.dependents.set(node.uid, node)
        if (!ownerNode.virtual && isElsewhere(ownerNode, node)) {
          change.invalid.push({ dependent: node, ownerUid: owner.uid })
          change.attemptToDelete.add(node)
        }
        // The owner is unknown to the graph: look it up. If it is being deleted, delete this dependent too.
        if (ownerNode.virtual || ownerNode.deletingDependents) change.attemptToDelete.add(node)
      }
    }
    if (before.length > node.owners.length) change.attemptToDelete.add(node)
  }

  #unlink(node: GraphNode, ownerUid: string, change: GraphChange): void {
    const owner = this.#nodes.get(ownerUid)
    if (!owner) return
    owner.dependents.delete(node.uid)
    this.#retryForeground(ownerUid, change)
    if (owner.virtual && owner.dependents.size === 0) this.#nodes.delete(ownerUid)
  }

  #retryForeground(uid: string, change: GraphChange): void {
    const owner = this.#nodes.get(uid)
    if (owner?.deletingDependents) change.attemptToDelete.add(owner)
  }
}

/** An owner in a namespace owns nothing outside of it. */
function isElsewhere(owner: GraphNode, dependent: GraphNode): boolean {
  return owner.namespace !== undefined && owner.namespace !== dependent.namespace
}

/** The dependents that an owner's foreground deletion waits for. */
export function blockingDependents(node: GraphNode): GraphNode[] {
  return [...node.dependents.values()].filter((dependent) => dependent.owners.some((owner) => owner.uid === node.uid && owner.blockOwnerDeletion))
}
