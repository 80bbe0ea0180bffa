/** DeviceClass (L1). Upstream: pkg/registry/resource/deviceclass, pkg/apis/resource/validation (v1.36). */
import type { DeviceClass } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isQualifiedName } from '#api/machinery/names'
import { ageColumn, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { configurationFaults, listFaults, maxConfigs, selectorsFaults } from './deviceRules.ts'

export const deviceClass = defineKind<DeviceClass>({
  group: 'resource.k8s.io',
  kind: 'DeviceClass',
  columns: [nameColumn, ageColumn],
  validate: ({ obj, path }) => specFaults(obj, undefined, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => specFaults(obj, old, path.child('spec')),
})

function specFaults({ spec }: DeviceClass, old: Frozen<DeviceClass> | undefined, path: FieldPath): FieldError[] {
  const kept = (field: 'selectors' | 'config') => old !== undefined && semanticEqual(spec?.[field], old.spec?.[field])
  const errors = [
    ...selectorsFaults(spec?.selectors, kept('selectors'), path.child('selectors')),
    ...listFaults(spec?.config, maxConfigs, ({ opaque }, at) => configurationFaults(opaque, kept('config'), at), path.child('config')),
  ]
  const name = spec?.extendedResourceName
  if (name !== undefined && !isExtendedResourceName(name))
    errors.push(fieldError.invalid(path.child('extendedResourceName'), name, 'must be a valid extended resource name'))
  return errors
}

/** Whether the name has a domain prefix and is short enough for the name of a quota. */
function isExtendedResourceName(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.') && isQualifiedName(`requests.${name}`).length === 0
}
