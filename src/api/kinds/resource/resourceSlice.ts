/** ResourceSlice (L1). Upstream: pkg/registry/resource/resourceslice, pkg/apis/resource/validation, printers (v1.36). */
import type { ResourceSlice } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { formatTime } from '#base/time'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { type CreateInput, defineKind } from '../defineKind.ts'
import { listAttributes, validateSlice } from './sliceRules.ts'

export const resourceSlice = defineKind<ResourceSlice>({
  group: 'resource.k8s.io',
  kind: 'ResourceSlice',
  columns: [
    nameColumn,
    text('Node', (obj) => obj.spec?.nodeName ?? ''),
    text('Driver', (obj) => obj.spec?.driver ?? ''),
    text('Pool', (obj) => obj.spec?.pool?.name ?? ''),
    ageColumn,
  ],
  selectableFields: { 'spec.nodeName': (obj) => obj.spec?.nodeName ?? '', 'spec.driver': (obj) => obj.spec?.driver ?? '' },
  prepareForCreate(input) {
    dropDisabled(input.obj, undefined)
    stampTaints(input)
  },
  prepareForUpdate(input) {
    dropDisabled(input.obj, input.old)
    stampTaints(input)
  },
  validate: ({ obj, path }) => validateSlice(obj, undefined, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...validateSlice(obj, old, path.child('spec')),
    ...validateImmutable(obj.spec?.pool?.name, old.spec?.pool?.name, path.child('spec', 'pool', 'name')),
    ...validateImmutable(obj.spec?.driver, old.spec?.driver, path.child('spec', 'driver')),
    ...validateImmutable(obj.spec?.nodeName, old.spec?.nodeName, path.child('spec', 'nodeName')),
  ],
})

/** timeAdded of a taint is the time of the write, unless the driver sets it. */
function stampTaints({ obj, context }: CreateInput<ResourceSlice>): void {
  for (const { taints } of obj.spec?.devices ?? []) for (const taint of taints ?? []) taint.timeAdded ??= formatTime(context.nowMs)
}

/** What belongs to gates that are off by default, DRAListTypeAttributes and DRANodeAllocatableResources, is kept only where it was before. */
function dropDisabled({ spec }: ResourceSlice, old: Frozen<ResourceSlice> | undefined): void {
  const before = old?.spec.devices ?? []
  const lists = before.some(({ attributes }) => Object.values(attributes ?? {}).some((attribute) => listAttributes.some((list) => attribute[list])))
  const mappings = before.some(({ nodeAllocatableResourceMappings }) => nodeAllocatableResourceMappings)
  for (const device of spec.devices ?? []) {
    if (!mappings) delete device.nodeAllocatableResourceMappings
    if (lists) continue
    for (const attribute of Object.values(device.attributes ?? {})) for (const list of listAttributes) delete attribute[list]
  }
}
