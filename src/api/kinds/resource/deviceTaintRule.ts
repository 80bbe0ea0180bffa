/** DeviceTaintRule (L1): a taint that an administrator puts on devices. Upstream: pkg/registry/resource/devicetaintrule, pkg/apis/resource/validation (v1.36). */
import type { DeviceTaintRule, DeviceTaintSelector } from '#api/gen/types/resource.v1beta2'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { ageColumn, nameColumn } from '../columns.ts'
import { validateConditions } from '../conditionRules.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { driverFaults, labelFaults, poolNameFaults, taintFaults } from './deviceRules.ts'

const maxConditions = 8

export const deviceTaintRule = defineKind<DeviceTaintRule>({
  group: 'resource.k8s.io',
  kind: 'DeviceTaintRule',
  columns: [nameColumn, ageColumn],
  prepareForCreate({ obj, context }) {
    dropStatus(obj)
    obj.spec.taint.timeAdded ??= formatTime(context.nowMs)
  },
  prepareForUpdate,
  validate: ({ obj, path }) => specFaults(obj, undefined, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => specFaults(obj, old, path.child('spec')),
  status: statusStrategy<DeviceTaintRule>({ keepMetadata: resetMetadata, validateUpdate: statusFaults }),
})

/** timeAdded is when the effect last changed, unless the writer sets it. */
function prepareForUpdate({ obj, old, context }: UpdateInput<DeviceTaintRule>): void {
  keepStatus({ obj, old })
  const [taint, before] = [obj.spec.taint, old.spec.taint]
  const isChanged = taint.effect !== before.effect && taint.timeAdded === before.timeAdded
  if (isChanged || taint.timeAdded === undefined) taint.timeAdded = formatTime(context.nowMs)
}

function specFaults({ spec }: DeviceTaintRule, old: Frozen<DeviceTaintRule> | undefined, path: FieldPath): FieldError[] {
  return [...selectorFaults(spec.deviceSelector, path.child('deviceSelector')), ...taintFaults(spec.taint, path.child('taint'), old?.spec.taint.effect)]
}

function selectorFaults({ driver, pool, device }: DeviceTaintSelector = {}, path: FieldPath): FieldError[] {
  return [
    ...(driver === undefined ? [] : driverFaults(driver, path.child('driver'))),
    ...(pool === undefined ? [] : poolNameFaults(pool, path.child('pool'))),
    ...(device === undefined ? [] : labelFaults(device, path.child('device'))),
  ]
}

function statusFaults({ obj, path }: UpdateInput<DeviceTaintRule>): FieldError[] {
  const conditions = obj.status?.conditions ?? []
  const at = path.child('status', 'conditions')
  const errors = validateConditions(conditions, at)
  return conditions.length > maxConditions ? [...errors, fieldError.tooMany(at, conditions.length, maxConditions)] : errors
}
