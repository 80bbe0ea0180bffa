/**
 * Deletes objects that cannot be read (L3): preconditions, finalizers and admission cannot apply to an unreadable object. The feature gate
 * AllowUnsafeMalformedObjectDeletion turns it on, and the user needs a separate permission.
 * Upstream: generic/registry/corrupt_obj_deleter.go and authorizeUnsafeDelete of handlers/delete.go (v1.36).
 */
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { conflict, forbidden, optimisticLockMessage } from '#api/machinery/status'
import { authorize } from '../authz/union.ts'
import { keyFor, type WriteContext } from './storedResource.ts'
import type { WriterDeps } from './writer.ts'

const verb = 'unsafe-delete-ignore-read-errors'
const option = FieldPath.of('ignoreStoreReadErrorWithClusterBreakingPotential')

/** @throws Status Forbidden without the permission; Invalid when the object is readable or missing; Conflict when it was written meanwhile */
export async function deleteUnreadable(deps: WriterDeps, context: WriteContext, name: string): Promise<void> {
  const { served } = context
  await checkRight(deps, context, name)
  const key = keyFor(served, context.namespace, name)
  await deps.storage.current()
  const found = served.stored.cache.unreadableAt(key)
  if (!found) {
    const why = 'is exclusively used to delete corrupt object(s), try again by removing this option'
    throw invalid({ group: served.group, kind: served.resource }, name, [fieldError.invalid(option, true, why)])
  }
  const revision = await deps.storage.delete(served.stored, { key, resourceVersion: found.kv.modRevision })
  if (revision === undefined) throw conflict(served, name, optimisticLockMessage)
}

async function checkRight(deps: WriterDeps, { served, namespace, user, request }: WriteContext, name: string): Promise<void> {
  const { group: apiGroup, version: apiVersion, resource } = served
  const path = request?.info?.path ?? ''
  const attributes = { user, verb, isResourceRequest: true, path, namespace, apiGroup, apiVersion, resource, subresource: '', name }
  const { decision, reason, error } = await authorize(deps.authorizers, attributes)
  if (decision === 'allow') return
  const why = error === undefined ? `not permitted to do "${verb}", reason: ${reason}` : `error while checking permission for "${verb}", ${error}`
  throw forbidden({ group: apiGroup, resource }, name, why)
}
