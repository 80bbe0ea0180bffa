/** Rules that both storage classes share (L1): the driver's name and its parameters. Upstream: pkg/apis/storage/validation (v1.36). */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain, isQualifiedName } from '#api/machinery/names'
import { utf8Length } from '../core/data.ts'
import { faults } from '../rules.ts'

const maxParameters = 512
const maxParametersBytes = 256 * 1024
const maxDriverNameLength = 63

/** A qualified name, in any case. */
export function provisionerFaults(name: string | undefined, path: FieldPath): FieldError[] {
  return name ? faults(path, name.toLowerCase(), isQualifiedName(name.toLowerCase())) : [fieldError.required(path)]
}

export function parametersFaults(parameters: Readonly<Record<string, string>> | undefined, path: FieldPath): FieldError[] {
  const entries = Object.entries(parameters ?? {})
  if (entries.length > maxParameters) return [fieldError.tooLong(path, maxParameters)]
  const errors = entries.filter(([key]) => key === '').map(([key]) => fieldError.invalid(path, key, 'field can not be empty.'))
  const size = entries.reduce((sum, [key, value]) => sum + utf8Length(key) + utf8Length(value), 0)
  return size > maxParametersBytes ? [...errors, fieldError.tooLong(path, maxParametersBytes)] : errors
}

/** The name of a CSI driver, wherever it is referred to. Upstream: pkg/apis/core/validation ValidateCSIDriverName. */
export function csiDriverNameFaults(name: string | undefined, path: FieldPath): FieldError[] {
  if (!name) return [fieldError.required(path)]
  const tooLong = name.length > maxDriverNameLength ? [fieldError.tooLong(path, maxDriverNameLength)] : []
  return [...tooLong, ...faults(path, name, isDns1123Subdomain(name.toLowerCase()))]
}
