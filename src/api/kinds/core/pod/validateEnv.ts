/** Validation of environment variables and of references to fields (L1). Upstream: pkg/apis/core/validation validateEnv* (v1.36). */
import type { EnvFromSource, EnvVar, ObjectFieldSelector, ResourceFieldSelector } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isConfigMapKey, isDns1123Subdomain, isEnvVarName, isQualifiedName } from '#api/machinery/names'
import { canonicalQuantity, isQuantity } from '#api/machinery/quantity'
import { faults } from '../../rules.ts'

const envFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
export const volumeFields: readonly string[] = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid']

const resourceFields = ['limits.cpu', 'limits.ephemeral-storage', 'limits.memory', 'requests.cpu', 'requests.ephemeral-storage', 'requests.memory']

const sourceNames = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'] as const

export function validateEnv(env: readonly EnvVar[] | undefined, path: FieldPath): FieldError[] {
  return (env ?? []).flatMap((variable, i) => {
    const at = path.index(i)
    const names = variable.name ? faults(at.child('name'), variable.name, isEnvVarName(variable.name)) : [fieldError.required(at.child('name'))]
    return [...names, ...valueFromFaults(variable, at.child('valueFrom'))]
  })
}

export function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, path: FieldPath): FieldError[] {
  return (sources ?? []).flatMap((source, i) => {
    const at = path.index(i)
    const errors = source.prefix ? faults(at.child('prefix'), source.prefix, isEnvVarName(source.prefix)) : []
    const given = (['configMapRef', 'secretRef'] as const).filter((name) => source[name])
    if (given.length === 0) errors.push(fieldError.invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'))
    if (given.length > 1) errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'))
    for (const name of given) errors.push(...referenceName(source[name]?.name, at.child(name, 'name')))
    return errors
  })
}

/** A reference to one of the pod's own fields; `allowed` are the whole paths, annotations and labels may take a key where `subscripts`. */
export function validateFieldRef(ref: ObjectFieldSelector, allowed: readonly string[], path: FieldPath): FieldError[] {
  if (!ref.apiVersion) return [fieldError.required(path.child('apiVersion'))]
  const at = path.child('fieldPath')
  if (!ref.fieldPath) return [fieldError.required(at)]
  const subscript = /^(metadata\.(?:annotations|labels))\['(.*)'\]$/s.exec(ref.fieldPath)
  if (subscript) {
    const key = subscript[2] ?? ''
    return faults(at, key, isQualifiedName(subscript[1] === 'metadata.annotations' ? key.toLowerCase() : key))
  }
  if (![...envFields, ...volumeFields].includes(ref.fieldPath))
    return [fieldError.invalid(at, ref.fieldPath, `error converting fieldPath: field label not supported: ${ref.fieldPath}`)]
  return allowed.includes(ref.fieldPath) ? [] : [fieldError.notSupported(at, ref.fieldPath, [...allowed].sort())]
}

export function validateResourceFieldRef(ref: ResourceFieldSelector, needsContainer: boolean, path: FieldPath): FieldError[] {
  if (needsContainer && !ref.containerName) return [fieldError.required(path.child('containerName'))]
  const at = path.child('resource')
  if (!ref.resource) return [fieldError.required(at)]
  const errors: FieldError[] = []
  if (!resourceFields.includes(ref.resource) && !/^(limits|requests)\.hugepages-.+/.test(ref.resource))
    errors.push(fieldError.notSupported(at, ref.resource, resourceFields))
  errors.push(...divisorFaults(ref, path.child('divisor')))
  return errors
}

const byteDivisors = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

/** The unit in which the container reads its resource: none, or one of a few. */
function divisorFaults({ resource, divisor = '0' }: ResourceFieldSelector, path: FieldPath): FieldError[] {
  if (!isQuantity(divisor)) return [fieldError.invalid(path, divisor, 'must be a quantity')]
  const unit = canonicalQuantity(divisor)
  if (unit === '0') return []
  const name = resource.replace(/^(limits|requests)\./, '')
  if (name === 'cpu')
    return ['1m', '1'].includes(unit) ? [] : [fieldError.invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")]
  if (byteDivisors.includes(unit)) return []
  const word = name === 'memory' ? 'memory' : name === 'ephemeral-storage' ? 'local ephemeral storage' : 'hugepages'
  return [fieldError.invalid(path, resource, `only divisor's values ${byteDivisors.join(', ')} are supported with the ${word} resource`)]
}

/** A required name of a ConfigMap or Secret. */
function referenceName(name: string | undefined, path: FieldPath): FieldError[] {
  return name ? faults(path, name, isDns1123Subdomain(name)) : [fieldError.required(path)]
}

function valueFromFaults({ value, valueFrom }: EnvVar, path: FieldPath): FieldError[] {
  if (!valueFrom) return []
  const given = sourceNames.filter((name) => valueFrom[name])
  const errors: FieldError[] = []
  if (valueFrom.fieldRef) errors.push(...validateFieldRef(valueFrom.fieldRef, envFields, path.child('fieldRef')))
  if (valueFrom.resourceFieldRef) errors.push(...validateResourceFieldRef(valueFrom.resourceFieldRef, false, path.child('resourceFieldRef')))
  for (const name of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const ref = valueFrom[name]
    if (!ref) continue
    errors.push(...faults(path.child(name, 'name'), ref.name ?? '', isDns1123Subdomain(ref.name ?? '')))
    const at = path.child(name, 'key')
    errors.push(...(ref.key ? faults(at, ref.key, isConfigMapKey(ref.key)) : [fieldError.required(at)]))
  }
  if (given.length === 0)
    errors.push(fieldError.invalid(path, '', 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'))
  else if (value) errors.push(fieldError.invalid(path, '', 'may not be specified when `value` is not empty'))
  else if (given.length > 1) errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'))
  return errors
}
