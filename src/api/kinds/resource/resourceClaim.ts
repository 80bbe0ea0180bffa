/** The kinds of dynamic resource allocation (L1). Upstream: pkg/registry/resource, printers printResourceClaim, printResourceSlice (v1.36). */
import type { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice } from '#api/gen/types/resource.v1'
import type { DeviceTaintRule } from '#api/gen/types/resource.v1beta2'
import { fieldError } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

const group = 'resource.k8s.io'

export const deviceClass = defineKind<DeviceClass>({ group, kind: 'DeviceClass', columns: [nameColumn, ageColumn] })

export const resourceClaim = defineKind<ResourceClaim>({
  group,
  kind: 'ResourceClaim',
  generation: false,
  columns: [nameColumn, text('State', stateText), ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<ResourceClaim>({
    validateUpdate: ({ obj, path }) =>
      obj.status?.reservedFor?.length && !obj.status.allocation
        ? [fieldError.forbidden(path.child('status', 'reservedFor'), 'may not be specified when `allocated` is not set')]
        : [],
  }),
})

export const resourceClaimTemplate = defineKind<ResourceClaimTemplate>({
  group,
  kind: 'ResourceClaimTemplate',
  generation: false,
  columns: [nameColumn, ageColumn],
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
})

export const resourceSlice = defineKind<ResourceSlice>({
  group,
  kind: 'ResourceSlice',
  columns: [
    nameColumn,
    text('Node', (obj) => obj.spec?.nodeName ?? ''),
    text('Driver', (obj) => obj.spec?.driver ?? ''),
    text('Pool', (obj) => obj.spec?.pool?.name ?? ''),
    ageColumn,
  ],
  selectableFields: { 'spec.nodeName': (obj) => obj.spec?.nodeName ?? '', 'spec.driver': (obj) => obj.spec?.driver ?? '' },
  validateUpdate: ({ obj, old, path }) => [
    ...validateImmutable(obj.spec?.driver, old.spec?.driver, path.child('spec', 'driver')),
    ...validateImmutable(obj.spec?.nodeName, old.spec?.nodeName, path.child('spec', 'nodeName')),
    ...validateImmutable(obj.spec?.pool?.name, old.spec?.pool?.name, path.child('spec', 'pool', 'name')),
  ],
})

export const deviceTaintRule = defineKind<DeviceTaintRule>({
  group,
  kind: 'DeviceTaintRule',
  columns: [nameColumn, ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  status: statusStrategy<DeviceTaintRule>(),
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
