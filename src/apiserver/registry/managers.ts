/**
 * Keeps metadata.managedFields on ordinary writes (L3): who set which field, at which endpoint.
 * Upstream: the FieldManager calls of handlers/create.go and update.go.
 */
import { trackUpdate } from '#api/machinery/managedFields/manager'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { WriteContext } from './storedResource.ts'

export function trackManagers(context: WriteContext, updated: KubeObject, old: Frozen<KubeObject> | undefined, nowMs: number): void {
  const { served, subresource, fieldManager } = context
  trackUpdate({
    old,
    updated,
    schema: served.schema,
    manager: fieldManager,
    apiVersion: served.apiVersion,
    subresource,
    resetFields: resetFields(context),
    nowMs,
    otherVersion: served.otherVersion,
  })
}

/** What an endpoint throws away, nobody comes to own through it. */
export function resetFields(context: WriteContext): readonly string[] {
  const { strategy, hasStatus } = context.served.stored
  if (context.subresource === '') return hasStatus ? ['status'] : []
  if (context.subresource === 'status') return strategy.status?.resetFields ?? ['spec']
  return strategy.subresources?.[context.subresource]?.resetFields ?? []
}
