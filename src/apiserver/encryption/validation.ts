/**
 * Checks an EncryptionConfiguration (L3, pure).
 * Upstream: apiserver/pkg/apis/apiserver/validation/validation_encryption.go (v1.36).
 */
import { formatDuration } from '#api/machinery/duration'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { EncryptionConfiguration, Key, KmsConfiguration, ProviderConfiguration } from './configuration.ts'
import { anyGroupAnyResource, type GroupResource, parseGroupResource } from './groupResource.ts'

const aesKeySizes = [16, 24, 32]
const secretboxKeySizes = [32]

const atLeastOne = (what: unknown) => `at least one ${what} is required`
const mandatory = (field: string, of: string) => `${field} is a mandatory field for a ${of}`

/** @param reload whether the file is reloaded when it changes: names of services must then be unique in it */
export function validateEncryptionConfiguration({ resources }: EncryptionConfiguration, reload: boolean): FieldError[] {
  const root = FieldPath.of('resources')
  if (resources.length === 0) return [fieldError.required(root, atLeastOne(root))]
  const serviceNames = new Set<string>()
  return resources.flatMap((one, at) => {
    const resourcesPath = root.index(at).child('resources')
    const providersPath = root.index(at).child('providers')
    return [
      ...(one.resources.length === 0 ? [fieldError.required(resourcesPath, atLeastOne(resourcesPath))] : []),
      ...overlapFaults(one.resources, resourcesPath),
      ...one.resources.flatMap((name, index) => resourceNameFaults(name, resourcesPath.index(index))),
      ...(one.providers.length === 0 ? [fieldError.required(providersPath, atLeastOne(providersPath))] : []),
      ...one.providers.flatMap((provider, index) => providerFaults(provider, providersPath.index(index), serviceNames, reload)),
    ]
  })
}

/** Resources that are named twice, or that two names cover. */
function overlapFaults(resources: readonly string[], path: FieldPath): FieldError[] {
  const parsed = resources.map(parseGroupResource)
  const same = (one: GroupResource, other: GroupResource) => one.group === other.group && one.resource === other.resource
  const pairs = parsed.flatMap((one, at) => parsed.filter((_, index) => index !== at).map((other) => [one, other] as const))
  const duplicate = pairs.some(([one, other]) => same(one, other))
  // Of equal pairs, the first is reported as a duplicate only.
  let isFirstDuplicate = true
  const overlap = pairs.some(([one, other]) => {
    if (same(one, other) && isFirstDuplicate) {
      isFirstDuplicate = false
      return false
    }
    return same(one, anyGroupAnyResource) || (one.group === other.group && (one.resource === '*' || other.resource === '*'))
  })
  const masked = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
  return [
    ...(duplicate ? [fieldError.invalid(path, resources, 'the same resource cannot be specified multiple times')] : []),
    ...(overlap ? [fieldError.invalid(path, resources, masked)] : []),
  ]
}

const notServed: ReadonlySet<string> = new Set(['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations'])

function resourceNameFaults(name: string, path: FieldPath): FieldError[] {
  const { group, resource } = parseGroupResource(name)
  const wrong = (why: string) => [fieldError.invalid(path, name, why)]
  if (name.toLowerCase() !== name) return wrong('resource name should not contain capital letters')
  if (name === '*') return wrong("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources")
  if (notServed.has(name)) return wrong('resources which do not have REST API/s cannot be encrypted')
  if (group === 'events.k8s.io') {
    return wrong("'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file")
  }
  if (group === 'extensions') return wrong("'extensions' group has been removed and cannot be used for encryption")
  return group === '*' && resource !== '*' ? wrong('encrypting the same resource across groups is not supported') : []
}

function providerFaults(provider: ProviderConfiguration, path: FieldPath, serviceNames: Set<string>, reload: boolean): FieldError[] {
  const { kms, aesgcm, aescbc, secretbox } = provider
  const faults = singleFaults(provider, path)
  if (kms) {
    faults.push(...kmsFaults(kms, path.child('kms'), serviceNames, reload))
    serviceNames.add(kms.name)
  } else if (aesgcm) faults.push(...keysFaults(aesgcm.keys, path.child('aesgcm', 'keys'), aesKeySizes))
  else if (aescbc) faults.push(...keysFaults(aescbc.keys, path.child('aescbc', 'keys'), aesKeySizes))
  else if (secretbox) faults.push(...keysFaults(secretbox.keys, path.child('secretbox', 'keys'), secretboxKeySizes))
  return faults
}

function singleFaults(provider: ProviderConfiguration, path: FieldPath): FieldError[] {
  const found = Object.keys(provider)
  // Only names of providers: their content is secret.
  const none = 'provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity'
  if (found.length === 0) return [fieldError.invalid(path, found, none)]
  if (found.length === 1) return []
  return [fieldError.invalid(path, found, 'more than one provider specified in a single element, should split into different list elements')]
}

function keysFaults(keys: readonly Key[], path: FieldPath, sizes: readonly number[]): FieldError[] {
  if (keys.length === 0) return [fieldError.required(path, atLeastOne('keys'))]
  return keys.flatMap((key, at) => keyFaults(key, path.index(at), sizes))
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function keyFaults({ name, secret }: Key, path: FieldPath, sizes: readonly number[]): FieldError[] {
  const nameFaults = name === '' ? [fieldError.required(path.child('name'), mandatory('name', 'key'))] : []
  const secretPath = path.child('secret')
  if (secret === '') return [...nameFaults, fieldError.required(secretPath, mandatory('secret', 'key'))]
  const redacted = (why: string) => [...nameFaults, fieldError.invalid(secretPath, 'REDACTED', why)]
  // Go's decoder leaves line ends out.
  if (!base64.test(secret.replace(/[\r\n]/g, ''))) return redacted('secrets must be base64 encoded')
  const { length } = Buffer.from(secret, 'base64')
  return sizes.includes(length) ? nameFaults : redacted(`secret is not of the expected length, got ${length}, expected one of [${sizes.join(' ')}]`)
}

function kmsFaults(kms: KmsConfiguration, path: FieldPath, serviceNames: ReadonlySet<string>, reload: boolean): FieldError[] {
  const timeout = path.child('timeout')
  return [
    ...kmsNameFaults(kms, path.child('name'), serviceNames, reload),
    ...(kms.timeoutMs > 0 ? [] : [fieldError.invalid(timeout, formatDuration(kms.timeoutMs), 'timeout should be a positive value')]),
    ...endpointFaults(kms.endpoint, path.child('endpoint')),
    ...cacheSizeFaults(kms, path.child('cachesize')),
    ...(kms.apiVersion === 'v1' || kms.apiVersion === 'v2'
      ? []
      : [fieldError.invalid(path.child('apiVersion'), kms.apiVersion, 'unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported')]),
  ]
}

function kmsNameFaults({ name, apiVersion }: KmsConfiguration, path: FieldPath, serviceNames: ReadonlySet<string>, reload: boolean): FieldError[] {
  const isOld = apiVersion === 'v1'
  const unique = reload || !isOld
  return [
    ...(name === '' ? [fieldError.required(path, mandatory('name', 'provider'))] : []),
    ...(!isOld && name.includes(':') ? [fieldError.invalid(path, name, `invalid KMS provider name ${name}, must not contain ':'`)] : []),
    ...(unique && serviceNames.has(name) ? [fieldError.invalid(path, name, `duplicate KMS provider name ${name}, names must be unique`)] : []),
  ]
}

function endpointFaults(endpoint: string, path: FieldPath): FieldError[] {
  if (endpoint === '') return [fieldError.invalid(path, '', mandatory('endpoint', 'kms'))]
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(endpoint)?.[1]?.toLowerCase() ?? ''
  if (scheme === 'unix') return []
  return [fieldError.invalid(path, endpoint, `unsupported scheme ${JSON.stringify(scheme)} for KMS provider, only unix is supported`)]
}

function cacheSizeFaults({ apiVersion, cachesize }: KmsConfiguration, path: FieldPath): FieldError[] {
  if (apiVersion !== 'v1') return cachesize === undefined ? [] : [fieldError.invalid(path, cachesize, 'cachesize is not supported in v2')]
  return cachesize === 0 ? [fieldError.invalid(path, cachesize, 'cachesize should be a positive value, or negative to disable')] : []
}
