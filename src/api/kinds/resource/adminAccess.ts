/**
 * Admin access to devices in use (L1): a claim with adminAccess is created and allocated only in a namespace whose label allows it.
 * Upstream: pkg/registry/resource/utils.go (v1.36).
 */
import type { ResourceClaim, ResourceClaimSpec } from '#api/gen/types/resource.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { StrategyContext, UpdateInput } from '../defineKind.ts'

const adminLabel = 'resource.kubernetes.io/admin-access'

/** Alternatives cannot ask for it. @param path of the claim's spec */
export function adminRequestFaults(spec: ResourceClaimSpec | undefined, context: StrategyContext, path: FieldPath): FieldError[] {
  const at = (spec?.devices?.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return at < 0 ? [] : labelFaults(context, path.child('devices', 'requests').index(at).child('adminAccess'))
}

/** An allocation is immutable, so access that was granted stays. */
export function adminResultFaults({ obj, old, path, context }: UpdateInput<ResourceClaim>): FieldError[] {
  const isAdmin = ({ adminAccess }: { readonly adminAccess?: boolean | undefined }) => adminAccess === true
  if (old.status?.allocation?.devices?.results?.some(isAdmin)) return []
  const at = (obj.status?.allocation?.devices?.results ?? []).findIndex(isAdmin)
  return at < 0 ? [] : labelFaults(context, path.child('status', 'allocation', 'devices', 'results').index(at).child('adminAccess'))
}

function labelFaults({ namespaceLabels }: StrategyContext, path: FieldPath): FieldError[] {
  if (namespaceLabels?.()?.[adminLabel] === 'true') return []
  return [fieldError.forbidden(path, `admin access to devices requires the \`${adminLabel}: true\` label on the containing namespace`)]
}
