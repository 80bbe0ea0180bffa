/**
 * Keeps metadata.managedFields on ordinary writes (L3): which manager set which field, at which endpoint.
 * Upstream: the FieldManager calls of handlers/create.go and update.go.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { trackUpdate, trackUpdateSteps } from '#api/managedFields/trackUpdate'
import type { OtherVersions } from '#api/managedFields/versions'
import { ownValue } from '#base/bareMap'
import { inSteps, isLargeObject } from '../core/fairLoop.ts'
import { withConvertedVersions } from './convertedVersions.ts'
import type { WriteContext } from './storedResource.ts'

/** Sets `updated.metadata.managedFields`: at once, unless a webhook converts the versions or the object is large. */
export function trackManagers(
  context: WriteContext,
  updated: KubeObject,
  old: Frozen<KubeObject> | undefined,
  nowMs: number,
  isLarge = isLargeObject(context.request?.bodyBytes ?? 0),
): Promise<void> | undefined {
  const { served, subresource, fieldManager } = context
  const { schema, apiVersion } = served
  const reset = resetFields(context)
  const input = (otherVersion: OtherVersions | undefined) => {
    return { old, updated, schema, manager: fieldManager, apiVersion, subresource, resetFields: reset, nowMs, otherVersion }
  }
  if (served.foreignConversion) return withConvertedVersions(served.foreignConversion, apiVersion, (otherVersion) => trackUpdate(input(otherVersion)))
  if (isLarge) return inSteps(trackUpdateSteps(input(served.otherVersion)), true)
  trackUpdate(input(served.otherVersion))
  return undefined
}

/** Fields that an endpoint resets: no manager can own them through it. */
export function resetFields(context: WriteContext): readonly string[] {
  const { strategy, hasStatus } = context.served.stored
  if (context.subresource === '') return strategy.resetFields ?? (hasStatus ? ['status'] : [])
  if (context.subresource === 'status') return strategy.status?.resetFields ?? ['spec']
  return ownValue(strategy.subresources, context.subresource)?.resetFields ?? []
}
