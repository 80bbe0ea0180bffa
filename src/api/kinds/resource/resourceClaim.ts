/**
 * ResourceClaim, its template and the kinds whose gates are off by default (L1).
 * Upstream: pkg/registry/resource, pkg/apis/resource/v1/defaults.go, printers printResourceClaim (v1.36).
 */
import type { ResourceClaim, ResourceClaimTemplate } from '#api/gen/types/resource.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { adminRequestFaults, adminResultFaults } from './adminAccess.ts'
import { setClaimDefaults, validateClaimSpec } from './claimRules.ts'
import { dropDeallocatedDevices, validateClaimStatusUpdate } from './claimStatus.ts'

const group = 'resource.k8s.io'
const claimStatus = statusStrategy<ResourceClaim>({
  keepMetadata: resetMetadata,
  validateUpdate: (input) => [...adminResultFaults(input), ...validateClaimStatusUpdate(input)],
})

export const resourceClaim = defineKind<ResourceClaim>({
  group,
  kind: 'ResourceClaim',
  generation: false,
  columns: [nameColumn, text('State', stateText), ageColumn],
  defaults: (obj) => setClaimDefaults(obj.spec),
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path, context }) => [
    ...adminRequestFaults(obj.spec, context, path.child('spec')),
    ...validateClaimSpec(obj.spec, false, path.child('spec')),
  ],
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: {
    ...claimStatus,
    prepareForUpdate(input) {
      claimStatus.prepareForUpdate?.(input)
      dropDeallocatedDevices(input)
    },
  },
})

export const resourceClaimTemplate = defineKind<ResourceClaimTemplate>({
  group,
  kind: 'ResourceClaimTemplate',
  generation: false,
  columns: [nameColumn, ageColumn],
  defaults: (obj) => setClaimDefaults(obj.spec?.spec),
  validate: ({ obj, path, context }) => [
    // The path is the claim's own, as upstream's.
    ...adminRequestFaults(obj.spec?.spec, context, path.child('spec')),
    ...validateClaimSpec(obj.spec?.spec, false, path.child('spec', 'spec')),
  ],
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
})

export const resourcePoolStatusRequest = defineKind<KubeObject>({
  group,
  kind: 'ResourcePoolStatusRequest',
  columns: [nameColumn, ageColumn],
  prepareForUpdate: keepStatus,
  status: statusStrategy<KubeObject>(),
})

function stateText(obj: Frozen<ResourceClaim>): string {
  const deleted = obj.metadata.deletionTimestamp !== undefined
  const states = deleted ? ['deleted'] : []
  if (!obj.status?.allocation) return (deleted ? states : ['pending']).join(',')
  states.push('allocated')
  if (obj.status.reservedFor?.length) states.push('reserved')
  else if (deleted) states.push('deallocating')
  return states.join(',')
}
