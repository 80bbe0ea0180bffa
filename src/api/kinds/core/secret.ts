/**
 * Secret (L1): stringData is folded into data, the type never changes, and each known type has its required keys.
 * Upstream: pkg/registry/core/secret, pkg/apis/core/v1/conversion.go, pkg/apis/core/validation (v1.36).
 */
import type { Secret } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { JsonSyntaxError, parseJson } from '#api/machinery/json'
import { isConfigMapKey } from '#api/machinery/names'
import { immutableMessage, validateImmutable } from '#api/machinery/objectMeta'
import { setOwn } from '../../machinery/objects.ts'
import { ageColumn, integer, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { base64Length, immutableWhenSet, maxDataBytes } from './data.ts'

const serviceAccountToken = 'kubernetes.io/service-account-token'

/** Type → keys it must have. basic-auth needs one of its two and is apart. */
// Maps, because a type may be any name, `constructor` too.
const requiredKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
])

const dockerKeys: ReadonlyMap<string, string> = new Map([
  ['kubernetes.io/dockercfg', '.dockercfg'],
  ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'],
])

export const secret = defineKind<Secret>({
  group: '',
  kind: 'Secret',
  generation: false,
  columns: [nameColumn, text('Type', (obj) => obj.type ?? ''), integer('Data', (obj) => Object.keys(obj.data ?? {}).length), ageColumn],
  selectableFields: { type: (obj) => obj.type ?? '' },
  defaults(obj) {
    obj.type ||= 'Opaque'
    if (!obj.stringData) return
    for (const [key, value] of Object.entries(obj.stringData)) {
      obj.data ??= {}
      setOwn(obj.data, key, base64Encode(value))
    }
    delete obj.stringData
  },
  prepareForUpdate({ obj, old }) {
    // An empty type means "as it was", so that older clients can update.
    if (!obj.type) obj.type = old.type
  },
  validate: ({ obj, path }) => secretFaults(obj, path),
  validateUpdate({ obj, old, path }) {
    const errors = validateImmutable(obj.type, old.type, path.child('type'))
    if (old.immutable) {
      if (!obj.immutable) errors.push(fieldError.forbidden(path.child('immutable'), `${immutableMessage} when \`immutable\` is set`))
      errors.push(...immutableWhenSet(obj.data, old.data, path.child('data')))
    }
    return [...errors, ...secretFaults(obj, path)]
  },
})

function secretFaults(obj: Secret, path: FieldPath): FieldError[] {
  const data = obj.data ?? {}
  const at = path.child('data')
  const errors: FieldError[] = []
  let size = 0
  for (const [key, value] of Object.entries(data)) {
    errors.push(...faults(at.key(key), key, isConfigMapKey(key)))
    size += base64Length(value)
  }
  if (size > maxDataBytes) errors.push(fieldError.tooLong(at, maxDataBytes))
  const type = obj.type ?? ''
  if (type === serviceAccountToken && !obj.metadata.annotations?.['kubernetes.io/service-account.name'])
    errors.push(fieldError.required(path.child('metadata', 'annotations').key('kubernetes.io/service-account.name')))
  const dockerKey = dockerKeys.get(type)
  if (dockerKey) errors.push(...dockerFaults(data[dockerKey], at.key(dockerKey)))
  if (type === 'kubernetes.io/basic-auth' && data.username === undefined && data.password === undefined)
    errors.push(fieldError.required(at.key('username')), fieldError.required(at.key('password')))
  for (const key of requiredKeys.get(type) ?? [])
    if (data[key] === undefined || (data[key] === '' && key === 'ssh-privatekey')) errors.push(fieldError.required(at.key(key)))
  return errors
}

function dockerFaults(value: string | undefined, path: FieldPath): FieldError[] {
  if (value === undefined) return [fieldError.required(path)]
  const fault = mapFault(Buffer.from(value, 'base64'))
  return fault === undefined ? [] : [fieldError.invalid(path, '<secret contents redacted>', fault)]
}

/** Go's message for a text that is not a map. It shows at most one character of the secret. */
function mapFault(text: Uint8Array): string | undefined {
  try {
    const { value } = parseJson(text)
    if (typeof value === 'object' && !Array.isArray(value)) return undefined
    const what = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
    return `json: cannot unmarshal ${what} into Go value of type map[string]interface {}`
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message
    throw error
  }
}

function base64Encode(value: string): string {
  return Buffer.from(value, 'utf8').toString('base64')
}
