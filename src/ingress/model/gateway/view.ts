/** What the Gateway API's rules ask about the rest of the cluster (L3, pure). */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type BackendTlsPolicy, gatewayGroup, type ObjectReference, type ReferenceGrant } from './kinds.ts'

export interface ClusterView {
  service(key: string): Frozen<Service> | undefined
  /** Undefined: the Secret holds a certificate and its key. */
  problemOfSecret(key: string): string | undefined
  namespaceLabels(namespace: string): Readonly<Record<string, string>>
  grantsIn(namespace: string): readonly Frozen<ReferenceGrant>[]
  /** The policies that name the Service as a target. */
  policiesFor(service: string): readonly Frozen<BackendTlsPolicy>[]
  /** The certificates of authorities in a ConfigMap, as PEM; `version` changes with them. */
  authoritiesIn(configMap: string): { readonly pem: string; readonly version: string } | { readonly problem: string }
}

/** An object of this kind and namespace may name an object of that namespace. */
export function isGranted(
  view: ClusterView,
  from: { readonly kind: string; readonly namespace: string },
  to: Frozen<ObjectReference> & { readonly namespace: string },
): boolean {
  if (from.namespace === to.namespace) return true
  return view
    .grantsIn(to.namespace)
    .some(
      ({ spec }) =>
        spec.from.some(({ group, kind, namespace }) => group === gatewayGroup && kind === from.kind && namespace === from.namespace) &&
        spec.to.some(({ group, kind, name }) => group === (to.group ?? '') && kind === to.kind && (!name || name === to.name)),
    )
}
