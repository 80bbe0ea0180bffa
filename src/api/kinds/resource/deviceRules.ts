/** Names, selectors, configurations and tolerations of devices (L1). Upstream: pkg/apis/resource/validation (v1.36). */
import { compileSelector, maxSelectorCost } from '#api/cel/device'
import type { NodeSelector } from '#api/gen/types/core.v1'
import type { DeviceSelector, DeviceTaint, DeviceToleration, OpaqueDeviceConfiguration } from '#api/gen/types/resource.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelName } from '#api/machinery/labelSelector'
import { isDns1123Label, isDns1123Subdomain, isLabelValue } from '#api/machinery/names'
import { formatType, isDyn } from '#cel/types'
import { utf8Length } from '../core/data.ts'
import { validateNodeSelectorTerm } from '../core/pod/validateScheduling.ts'
import { faults } from '../rules.ts'
import { csiDriverNameFaults } from '../storage/classRules.ts'

export const maxConfigs = 32
const maxSelectors = 32
const maxExpressionBytes = 10 * 1024
const maxParametersBytes = 10 * 1024
const maxPoolNameLength = 253
const maxIdLength = 32
const taintEffects = ['NoExecute', 'NoSchedule', 'None']
const identifierFault =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"

export const driverFaults = csiDriverNameFaults

/** A lower-case label: the name of a request, a device, a counter. */
export function labelFaults(name: string, path: FieldPath): FieldError[] {
  return faults(path, name, isDns1123Label(name))
}

export function poolNameFaults(name: string | undefined, path: FieldPath): FieldError[] {
  if (!name) return [fieldError.required(path)]
  const tooLong = name.length > maxPoolNameLength ? [fieldError.tooLong(path, maxPoolNameLength)] : []
  return [...tooLong, ...name.split('/').flatMap((part) => faults(path, part, isDns1123Subdomain(part)))]
}

/** `name` or `domain/name`, as attributes and capacities are called. */
export function qualifiedNameFaults(name: string, path: FieldPath): FieldError[] {
  const parts = name.split('/')
  const [first = '', second = ''] = parts
  if (parts.length === 1) return identifierFaults(first, path)
  if (parts.length > 2) return []
  return [
    ...(first ? csiDriverNameFaults(first, path) : [fieldError.invalid(path, '', 'the domain must not be empty')]),
    ...(second ? identifierFaults(second, path) : [fieldError.invalid(path, '', 'the name must not be empty')]),
  ]
}

export function fullyQualifiedNameFaults(name: string, path: FieldPath): FieldError[] {
  const errors = qualifiedNameFaults(name, path)
  const form = 'a fully qualified name must be a domain and a name separated by a slash'
  return name.includes('/') ? errors : [...errors, fieldError.invalid(path, name, form)]
}

function identifierFaults(id: string, path: FieldPath): FieldError[] {
  return [
    ...(id.length > maxIdLength ? [fieldError.tooLong(path, maxIdLength)] : []),
    ...(/^[A-Za-z_][A-Za-z0-9_]*$/.test(id) ? [] : [fieldError.invalid(path, id, identifierFault)]),
  ]
}

/** Items and their repeats; of a list that is too long only that it is. */
export function setFaults<T>(
  items: readonly T[] | undefined,
  max: number,
  check: (item: T, path: FieldPath) => readonly FieldError[],
  key: (item: T) => string | undefined,
  path: FieldPath,
): FieldError[] {
  const all = items ?? []
  const errors = listFaults(all, max, check, path)
  if (all.length > max) return errors
  const seen = new Set<string | undefined>()
  for (const [i, item] of all.entries()) {
    const id = key(item)
    if (seen.has(id)) errors.push(fieldError.duplicate(path.index(i), id))
    seen.add(id)
  }
  return errors
}

/** Items of a list; of a list that is too long only that it is. */
export function listFaults<T>(
  items: readonly T[] | undefined,
  max: number,
  check: (item: T, path: FieldPath) => readonly FieldError[],
  path: FieldPath,
): FieldError[] {
  const all = items ?? []
  return all.length > max ? [fieldError.tooMany(path, all.length, max)] : all.flatMap((item, i) => check(item, path.index(i)))
}

/** Keys and values of a map; of a map that is too large only that it is. Long keys are shortened in the middle where they are shown. */
export function mapFaults<T>(
  map: Readonly<Record<string, T>> | undefined,
  max: number,
  longestKey: number,
  check: (key: string, value: T, path: FieldPath) => readonly FieldError[],
  path: FieldPath,
): FieldError[] {
  const entries = Object.entries(map ?? {})
  if (entries.length > max) return [fieldError.tooMany(path, entries.length, max)]
  return entries.flatMap(([key, value]) => check(key, value, path.key(shortened(key, longestKey))))
}

function shortened(key: string, longest: number): string {
  if (key.length <= longest) return key
  const rest = longest - '...'.length
  return `${key.slice(0, Math.ceil(rest / 2))}...${key.slice(key.length - Math.floor(rest / 2))}`
}

/** `stored`: the expressions were there before and need not be read again. */
export function selectorsFaults(selectors: readonly DeviceSelector[] | undefined, stored: boolean, path: FieldPath): FieldError[] {
  return listFaults(
    selectors,
    maxSelectors,
    ({ cel }, at) => {
      if (!cel) return [fieldError.required(at.child('cel'))]
      const expression = at.child('cel', 'expression')
      if (utf8Length(cel.expression) > maxExpressionBytes) return [fieldError.tooLong(expression, maxExpressionBytes)]
      return stored ? [] : selectorFaults(cel.expression, expression)
    },
    path,
  )
}

function selectorFaults(expression: string, path: FieldPath): FieldError[] {
  const { compiled, maxCost } = compileSelector(expression)
  if (!compiled.ok) return [fieldError.invalid(path, expression, `compilation failed: ${compiled.message}`)]
  const { resultType } = compiled.checked
  if (resultType.kind !== 'bool' && !isDyn(resultType))
    return [fieldError.invalid(path, expression, `must evaluate to bool or the unknown type, not ${formatType(resultType)}`)]
  return maxCost > maxSelectorCost ? [fieldError.forbidden(path, 'too complex, exceeds cost limit')] : []
}

export function configurationFaults(opaque: OpaqueDeviceConfiguration | undefined, stored: boolean, path: FieldPath): FieldError[] {
  const at = path.child('opaque')
  if (!opaque) return [fieldError.required(at)]
  return [...driverFaults(opaque.driver, at.child('driver')), ...objectFaults(opaque.parameters, stored, maxParametersBytes, at.child('parameters'))]
}

/** A JSON object of a driver's own. */
export function objectFaults(value: unknown, stored: boolean, maxBytes: number, path: FieldPath): FieldError[] {
  if (value === undefined || value === null) return [fieldError.required(path)]
  if (!stored && utf8Length(JSON.stringify(value)) > maxBytes) return [fieldError.tooLong(path, maxBytes)]
  return typeof value === 'object' && !Array.isArray(value) ? [] : [fieldError.invalid(path, '<value omitted>', 'must be a valid JSON object')]
}

/** @param oldEffect what was stored before: it may stay, even if this release does not know it */
export function taintFaults({ key, value, effect }: DeviceTaint, path: FieldPath, oldEffect?: string): FieldError[] {
  const errors = validateLabelName(key, path.child('key'))
  if (value) errors.push(...faults(path.child('value'), value, isLabelValue(value)))
  if (effect !== undefined && effect === oldEffect) return errors
  if (!effect) errors.push(fieldError.required(path.child('effect')))
  else if (!taintEffects.includes(effect)) errors.push(fieldError.notSupported(path.child('effect'), effect, taintEffects))
  return errors
}

export function tolerationFaults({ key, value = '', operator, effect }: DeviceToleration, path: FieldPath): FieldError[] {
  const errors = key ? validateLabelName(key, path.child('key')) : []
  if (!operator) errors.push(fieldError.required(path.child('operator')))
  else if (operator === 'Equal') errors.push(...faults(path.child('value'), value, isLabelValue(value)))
  else if (operator !== 'Exists') errors.push(fieldError.notSupported(path.child('operator'), operator, ['Equal', 'Exists']))
  else if (value) errors.push(fieldError.invalid(path.child('value'), value, 'must be empty for operator `Exists`'))
  if (effect && !taintEffects.includes(effect)) errors.push(fieldError.notSupported(path.child('effect'), effect, taintEffects))
  return errors
}

/** Binding conditions and binding failure conditions of a device. */
export function bindingConditionFaults(conditions: readonly string[] = [], failures: readonly string[] = [], path: FieldPath): FieldError[] {
  const [ready, failed] = [path.child('bindingConditions'), path.child('bindingFailureConditions')]
  const max = 4
  const repeats = (list: readonly string[], at: FieldPath) => [...repeatedAt(list)].map((i) => fieldError.duplicate(at.index(i), list[i]))
  const errors = [
    ...listFaults(conditions, max, validateLabelName, ready),
    ...listFaults(failures, max, validateLabelName, failed),
    ...repeats(conditions, ready),
    ...repeats(failures, failed),
  ]
  for (const [i, one] of failures.entries())
    if (conditions.includes(one)) errors.push(fieldError.invalid(failed.index(i), one, 'bindingFailureConditions must not overlap with bindingConditions'))
  if (conditions.length === 0 && failures.length > 0)
    errors.push(fieldError.invalid(ready, conditions, 'bindingConditions are required to use bindingFailureConditions'))
  if (failures.length === 0 && conditions.length > 0)
    errors.push(fieldError.invalid(failed, failures, 'bindingFailureConditions are required to use bindingConditions'))
  return errors
}

/** The nodes that a device, or all of a slice, can be used from. */
export function nodeSelectorFaults(selector: NodeSelector, path: FieldPath): FieldError[] {
  const at = path.child('nodeSelectorTerms')
  const terms = selector.nodeSelectorTerms ?? []
  if (terms.length === 0) return [fieldError.required(at, 'must have at least one node selector term')]
  return terms.flatMap((term, i) => validateNodeSelectorTerm(term, true, at.index(i)))
}
