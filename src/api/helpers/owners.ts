/** Owner references (L1). Upstream: apimachinery/pkg/apis/meta/v1/controller_ref.go (v1.36). */
import type { Frozen, KubeObject, OwnerReference } from '#api/machinery/meta'

type Owned = { readonly metadata: { readonly ownerReferences?: readonly Readonly<OwnerReference>[] | undefined } }

/** The reference to the managing controller, if any. */
export function controllerOf(object: Owned): Readonly<OwnerReference> | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true)
}

export function isControlledBy(object: Owned, owner: { readonly metadata: { readonly uid?: string | undefined } }): boolean {
  const uid = owner.metadata.uid
  return uid !== undefined && controllerOf(object)?.uid === uid
}

/** A reference that makes `owner` the managing controller and holds its foreground deletion back. */
export function controllerReference(owner: Frozen<KubeObject>): OwnerReference {
  return { ...ownerReference(owner), controller: true, blockOwnerDeletion: true }
}

/** A plain reference: the object goes when its owners are gone. */
export function ownerReference(owner: Frozen<KubeObject>): OwnerReference {
  const { name = '', uid = '' } = owner.metadata
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid }
}
