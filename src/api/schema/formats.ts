/**
 * The string formats that custom resources' schemas are checked for (L1). Names are compared without dashes; what is not in this table
 * is accepted as it comes. Patterns are ours and linear, so no value can hang the server.
 * Upstream: kube-openapi/pkg/validation/strfmt, apiextensions-apiserver/pkg/apiserver/validation/formats.go (v1.36).
 */
import { bareMap } from '#base/bareMap'
import { parseTime } from '#base/time'
import { parseCidr, parseIp } from '../machinery/ip.ts'
import { isDns1123Label, isDns1123Subdomain } from '../machinery/names.ts'

type FormatCheck = (value: string) => boolean

const matches =
  (pattern: RegExp): FormatCheck =>
  (value) =>
    pattern.test(value)

const formats: Readonly<Record<string, FormatCheck>> = bareMap({
  bsonobjectid: matches(/^[0-9a-f]{24}$/i),
  uri: matches(/^(\/|[a-z][a-z0-9+.-]*:)[^\s]*$/i),
  email: matches(/^(?:[^<>@]*<)?[^\s<>@]+@[^\s<>@]+>?$/),
  hostname: isHostname,
  ipv4: (value) => parseIp(value)?.family === 4,
  ipv6: (value) => parseIp(value)?.family === 6,
  cidr: (value) => parseCidr(value) !== undefined,
  mac: matches(/^(?:[0-9a-f]{2}[:-]){5}(?:[0-9a-f]{2}[:-]?){1}(?:(?:[0-9a-f]{2}[:-]?){2})?$|^(?:[0-9a-f]{4}\.){2,3}[0-9a-f]{4}$/i),
  uuid: matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid3: matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid4: matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  uuid5: matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  isbn: (value) => isIsbn10(value) || isIsbn13(value),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/),
  hexcolor: matches(/^#?([0-9a-f]{3}|[0-9a-f]{6})$/i),
  rgbcolor: matches(/^rgb\(\s*(?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*(?:,\s*(?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)$/),
  byte: (value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
  password: () => true,
  date: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && parseTime(`${value}T00:00:00Z`) !== undefined,
  duration: matches(
    /^[+-]?(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h))+$|^0$|^\d+\s*(?:ns|nanos?|us|µs|micros?|ms|millis?|s|secs?|m|mins?|h|hrs?|hours?|d|days?|w|weeks?)$/,
  ),
  datetime: (value) => parseTime(value) !== undefined,
  k8sshortname: (value) => isDns1123Label(value).length === 0,
  k8slongname: (value) => isDns1123Subdomain(value).length === 0,
})

/** The check of a string's format; undefined for formats that are not checked. */
export function formatCheck(format: string | undefined): FormatCheck | undefined {
  const name = (format ?? '').replaceAll('-', '')
  return Object.hasOwn(formats, name) ? formats[name] : undefined
}

/** Whether a schema of this type may name this format; others are ignored, and warned of. */
export function isRecognizedFormat(type: string | undefined, format: string): boolean {
  switch (type ?? '') {
    case '':
    case 'string':
      return formatCheck(format) !== undefined
    case 'integer':
      return format === 'int32' || format === 'int64'
    case 'number':
      return format === 'float' || format === 'double'
    default:
      return false
  }
}

function isHostname(value: string): boolean {
  if (value.length > 255 || value === '') return false
  return value
    .split('.')
    .every((label, at, all) => (label === '' && at === all.length - 1 && at > 0) || /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label))
}

function isIsbn10(value: string): boolean {
  const digits = value.replace(/[\s-]/g, '')
  if (!/^\d{9}[\dX]$/.test(digits)) return false
  const sum = [...digits].reduce((total, digit, at) => total + (at + 1) * (digit === 'X' ? 10 : Number(digit)), 0)
  return sum % 11 === 0
}

function isIsbn13(value: string): boolean {
  const digits = value.replace(/[\s-]/g, '')
  if (!/^\d{13}$/.test(digits)) return false
  return [...digits].reduce((total, digit, at) => total + (at % 2 === 0 ? 1 : 3) * Number(digit), 0) % 10 === 0
}

function isCreditCard(value: string): boolean {
  const digits = value.replace(/\D/g, '')
  const known = /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/
  if (!known.test(digits)) return false
  const sum = [...digits].reverse().reduce((total, digit, at) => {
    const doubled = Number(digit) * (at % 2 === 0 ? 1 : 2)
    return total + (doubled > 9 ? doubled - 9 : doubled)
  }, 0)
  return sum % 10 === 0
}
