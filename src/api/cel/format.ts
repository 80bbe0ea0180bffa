/**
 * CEL's library of named formats: format.dns1123Label().validate(text) and its kin (L1).
 * Upstream: apiserver/pkg/cel/library/format.go, pkg/cel/format.go (v1.36).
 */
import { parseTime } from '#base/time'
import type { Library } from '#cel/declarations'
import { declare, member, overload } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import { ArrayList, OpaqueValue, Optional } from '#cel/values'
import { isLabelValue, isQualifiedName, nameIsDns1035Label, nameIsDnsLabel, nameIsDnsSubdomain } from '../machinery/names.ts'
import { urlFault } from './url.ts'

export class FormatValue extends OpaqueValue {
  readonly typeName = 'kubernetes.NamedFormat'
  readonly name: string
  readonly validate: (text: string) => readonly string[]
  /** How long the pattern behind it is taken to be when a validation's cost is counted. */
  readonly maxRegexSize: number

  constructor(name: string, maxRegexSize: number, validate: (text: string) => readonly string[]) {
    super()
    this.name = name
    this.maxRegexSize = maxRegexSize
    this.validate = validate
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && this.name === other.name
  }
}

/** One fault with the given text unless the test holds. */
const tested =
  (holds: (text: string) => boolean, fault: string) =>
  (text: string): readonly string[] =>
    holds(text) ? [] : [fault]

const uuidLength = 70
const dateTimeLength = 71
const urlLength = 1103
const base64Length = 84

const isDate = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && parseTime(`${text}T00:00:00Z`) !== undefined
const isDateTime = (text: string): boolean => parseTime(text.replace(' ', 'T')) !== undefined

const formats: ReadonlyMap<string, FormatValue> = new Map([
  ['dns1123Label', new FormatValue('DNS1123Label', 30, (text) => nameIsDnsLabel(text, false))],
  ['dns1123Subdomain', new FormatValue('DNS1123Subdomain', 60, (text) => nameIsDnsSubdomain(text, false))],
  ['dns1035Label', new FormatValue('DNS1035Label', 30, (text) => nameIsDns1035Label(text, false))],
  ['qualifiedName', new FormatValue('QualifiedName', 60, isQualifiedName)],
  ['dns1123LabelPrefix', new FormatValue('DNS1123LabelPrefix', 30, (text) => nameIsDnsLabel(text, true))],
  ['dns1123SubdomainPrefix', new FormatValue('DNS1123SubdomainPrefix', 60, (text) => nameIsDnsSubdomain(text, true))],
  ['dns1035LabelPrefix', new FormatValue('DNS1035LabelPrefix', 30, (text) => nameIsDns1035Label(text, true))],
  ['labelValue', new FormatValue('LabelValue', 40, isLabelValue)],
  [
    'uri',
    new FormatValue('URI', urlLength, (text) => {
      const fault = urlFault(text)
      return fault === undefined ? [] : [fault]
    }),
  ],
  [
    'uuid',
    new FormatValue(
      'uuid',
      uuidLength,
      tested((text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text), 'does not match the UUID format'),
    ),
  ],
  [
    'byte',
    new FormatValue(
      'byte',
      base64Length,
      tested((text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), 'invalid base64'),
    ),
  ],
  ['date', new FormatValue('date', dateTimeLength, tested(isDate, 'invalid date'))],
  ['datetime', new FormatValue('datetime', dateTimeLength, tested(isDateTime, 'invalid datetime'))],
])

function validate(format: FormatValue, text: string): Optional {
  const faults = format.validate(text)
  return faults.length === 0 ? Optional.none : new Optional(new ArrayList(faults))
}

const type = 'kubernetes.NamedFormat'

export const formatLibrary: Library = {
  typeNames: [opaqueType(type)],
  functions: [
    ...[...formats].map(([name, format]) =>
      declare(
        `format.${name}`,
        overload(`format.${name}`, `() -> ${type}`, () => format),
      ),
    ),
    declare('validate', member('format-validate', `(${type}, string) -> optional(list(string))`, validate)),
    declare(
      'format.named',
      overload('format-named', `(string) -> optional(${type})`, (name: string) => {
        const format = formats.get(name)
        return format ? new Optional(format) : Optional.none
      }),
    ),
  ],
}
