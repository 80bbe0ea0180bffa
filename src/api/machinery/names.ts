/**
 * The forms that names, keys and values must have (L1). Each check returns one message per fault, none when the value is good.
 * The messages are upstream's: tools and people match on them. Upstream: apimachinery/pkg/util/validation, pkg/api/validate/content (v1.36).
 */

type Check = (value: string) => readonly string[]

const good: readonly string[] = []

function maxLengthMessage(length: number): string {
  return `must be no more than ${length} characters`
}

export function rangeMessage(low: number, high: number): string {
  return `must be between ${low} and ${high}, inclusive`
}

const emptyMessage = 'must be non-empty'

function patternMessage(message: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ')
  return `${message} (${shown === '' ? '' : `e.g. ${shown}`}regex used for validation is '${pattern}')`
}

/** A check of length, then of pattern. */
function form(pattern: string, message: string, examples: readonly string[], maxLength = Number.POSITIVE_INFINITY): Check {
  const compiled = new RegExp(`^${pattern}$`)
  const patternFault = patternMessage(message, pattern, ...examples)
  return (value) => {
    const tooLong = value.length > maxLength
    if (!tooLong && compiled.test(value)) return good
    return [...(tooLong ? [maxLengthMessage(maxLength)] : []), ...(compiled.test(value) ? [] : [patternFault])]
  }
}

const labelPattern = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomainPattern = `${labelPattern}(\\.${labelPattern})*`
const alphanumeric = 'must start and end with an alphanumeric character'

const dns1123LabelForm = form(
  labelPattern,
  `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and ${alphanumeric}`,
  ['my-name', '123-abc'],
  63,
)
const subdomainTest = new RegExp(`^${subdomainPattern}$`)

/** RFC 1123 label, e.g. a namespace's name. */
export function isDns1123Label(value: string): readonly string[] {
  const faults = dns1123LabelForm(value)
  return faults.length > 0 && value.includes('.') && subdomainTest.test(value)
    ? [...faults.filter((fault) => !fault.startsWith('a lowercase')), 'must not contain dots']
    : faults
}

/** RFC 1123 subdomain: most names. */
export const isDns1123Subdomain: Check = form(
  subdomainPattern,
  `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and ${alphanumeric}`,
  ['example.com'],
  253,
)

const underscoreLabel = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?'

/** A DNS search path may hold underscores. */
export const isDns1123SubdomainWithUnderscore: Check = form(
  `${underscoreLabel}(\\.${underscoreLabel})*`,
  `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and ${alphanumeric}`,
  ['example.com'],
  253,
)

/** RFC 1035 label: names of services. */
export const isDns1035Label: Check = form(
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  ['my-name', 'abc-123'],
  63,
)

/** `*.example.com`. */
export const isWildcardDns1123Subdomain: Check = form(
  `\\*\\.${subdomainPattern}`,
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  ['*.example.com'],
  253,
)

const keyPattern = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const keyTest = new RegExp(`^${keyPattern}$`)
const keyFault = patternMessage(`must consist of alphanumeric characters, '-', '_' or '.', and ${alphanumeric}`, keyPattern, 'MyName', 'my.name', '123-abc')

/** A label key, annotation key, finalizer, resource name, …: `name` or `prefix.example.com/name`. */
export function isQualifiedName(value: string): readonly string[] {
  const parts = value.split('/')
  if (parts.length > 2) return [`a valid label key ${keyFault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  const name = parts.at(-1) ?? ''
  const faults: string[] = []
  if (parts.length === 2) {
    const prefix = parts[0] ?? ''
    faults.push(...(prefix === '' ? [emptyMessage] : isDns1123Subdomain(prefix)).map((fault) => `prefix part ${fault}`))
  }
  if (name === '') faults.push(`name part ${emptyMessage}`)
  else if (name.length > 63) faults.push(`name part ${maxLengthMessage(63)}`)
  if (!keyTest.test(name)) faults.push(`name part ${keyFault}`)
  return faults
}

/** The value of a label: may be empty. */
export const isLabelValue: Check = form(
  `(${keyPattern})?`,
  `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and ${alphanumeric}`,
  ['MyValue', 'my_value', '12345'],
  63,
)

/** An environment variable's name: printable ASCII without '='. */
export function isEnvVarName(value: string): readonly string[] {
  if (value === '') return [`environment variable name ${emptyMessage}`]
  return /^[\x20-\x3c\x3e-\x7e]*$/.test(value) ? good : ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

const configMapKeyForm = form(
  '[-._a-zA-Z0-9]+',
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  ['key.name', 'KEY_NAME', 'key-name'],
  253,
)

/** A key of a ConfigMap or Secret: becomes a file name. */
export function isConfigMapKey(value: string): readonly string[] {
  const dots = value === '.' ? ["must not be '.'"] : value === '..' ? ["must not be '..'"] : value.startsWith('..') ? ["must not start with '..'"] : good
  return [...configMapKeyForm(value), ...dots]
}

export const isHttpHeaderName: Check = form('[-A-Za-z0-9]+', "a valid HTTP header must consist of alphanumeric characters or '-'", ['X-Header-Name'])

export const isPercent: Check = form('[0-9]+%', "a valid percent string must be a numeric string followed by an ending '%'", ['1%', '93%'])

/** An IANA service name: a container port's name. */
export function isPortName(value: string): readonly string[] {
  const faults: string[] = []
  if (value.length > 15) faults.push(maxLengthMessage(15))
  if (!/^[-a-z0-9]+$/.test(value)) faults.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(value)) faults.push('must contain at least one letter (a-z)')
  if (value.includes('--')) faults.push('must not contain consecutive hyphens')
  if (value.startsWith('-') || value.endsWith('-')) faults.push('must not begin or end with a hyphen')
  return faults
}

export function isPortNumber(value: number): readonly string[] {
  return Number.isInteger(value) && value >= 1 && value <= 65_535 ? good : [rangeMessage(1, 65_535)]
}

const reasonPattern = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?'
const reasonTest = new RegExp(`^${reasonPattern}$`)
const reasonFault = patternMessage(
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  reasonPattern,
  ...['my_name', 'MY_NAME', 'MyName', 'ReasonA,ReasonB', 'ReasonA:ReasonB'],
)

/** The reason of a condition, of any length. */
export function isConditionReason(value: string): readonly string[] {
  return reasonTest.test(value) ? good : [reasonFault]
}

/** A user or group ID. */
export function isUserId(value: number): readonly string[] {
  return value >= 0 && value <= 2_147_483_647 ? good : [rangeMessage(0, 2_147_483_647)]
}

/** Anything that can stand as one segment of a path: names of RBAC objects. */
export function isPathSegmentName(value: string, prefix = false): readonly string[] {
  if (!prefix && (value === '.' || value === '..')) return [`may not be '${value}'`]
  return ['/', '%'].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`)
}

/** How an object's name is checked; `prefix` is true for generateName, whose trailing dash will be followed by more. */
export type NameCheck = (name: string, prefix: boolean) => readonly string[]

// Upstream's mask drops two characters and adds one; kept, so that lengths are judged alike.
const masked = (name: string, prefix: boolean) => (prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name)

export function nameIsDnsSubdomain(name: string, prefix: boolean): readonly string[] {
  return isDns1123Subdomain(masked(name, prefix))
}

export function nameIsDnsLabel(name: string, prefix: boolean): readonly string[] {
  return isDns1123Label(masked(name, prefix))
}

export function nameIsDns1035Label(name: string, prefix: boolean): readonly string[] {
  return isDns1035Label(masked(name, prefix))
}

export function nameIsPathSegment(name: string, prefix: boolean): readonly string[] {
  return isPathSegmentName(name, prefix)
}
