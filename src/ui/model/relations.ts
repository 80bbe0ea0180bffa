/** Owners and dependants of an object as a tree (L4, pure). */
import type { Row } from './tables.ts'

export interface OwnerReference {
  readonly apiVersion?: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

export interface Related {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly owners: readonly OwnerReference[]
}

export interface Branch {
  readonly object: Related
  readonly dependants: readonly Branch[]
}

/** A row's object with its owners. */
export function relatedOf(
  kind: string,
  row: Row & { readonly object: { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } } },
): Related {
  const { namespace = '', name = '', uid = '', ownerReferences: owners = [] } = row.object.metadata
  return { kind, namespace, name, uid, owners }
}

const deepest = 8

/** The object with all that depends on it among the candidates. */
export function treeOf(object: Related, candidates: readonly Related[], depth = 0): Branch {
  const own = depth < deepest ? candidates.filter(({ owners }) => owners.some(({ uid }) => uid === object.uid)) : []
  return { object, dependants: own.map((one) => treeOf(one, candidates, depth + 1)) }
}
