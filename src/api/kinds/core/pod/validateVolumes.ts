/** Validation of volumes: exactly one source each, and the source's own rules (L1). Upstream: pkg/apis/core/validation ValidateVolumes (v1.36). */
import type { KeyToPath, Volume, VolumeProjection } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { isDns1123Label } from '#api/machinery/names'
import { compareQuantities, isQuantity } from '#api/machinery/quantity'
import { certificateSecondsRange, validateUserAnnotations } from '../../certificates/podCertificateRules.ts'
import { validateSignerName } from '../../certificates/signerName.ts'
import { faults, oneOf } from '../../rules.ts'
import { csiDriverNameFaults } from '../../storage/classRules.ts'
import { validateClaimTemplate } from '../validateClaim.ts'
import { validateFieldRef, validateResourceFieldRef, volumeFields } from './validateEnv.ts'
import { remoteSourceRules, type SourceRules, secretFaults } from './volumeSources.ts'

const hostPathTypes = ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket']
const modeMessage = 'must be a number between 0 and 0777 (octal), both inclusive'
const tenMinutes = 600

/** The rules of each source that has any; a source's mere presence is counted for all of them. */
const rules: SourceRules = {
  ...remoteSourceRules,
  emptyDir: ({ sizeLimit }, path) =>
    sizeLimit !== undefined && (!isQuantity(sizeLimit) || compareQuantities(sizeLimit, 0) < 0)
      ? [fieldError.forbidden(path.child('sizeLimit'), 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: ({ path: hostPath, type }, path) => [
    ...(hostPath ? noBacksteps(hostPath, path.child('path')) : [fieldError.required(path.child('path'))]),
    ...(type !== undefined && !hostPathTypes.includes(type) ? [fieldError.notSupported(path.child('type'), type, hostPathTypes)] : []),
  ],
  secret: (source, path) => [
    ...(source.secretName ? [] : [fieldError.required(path.child('secretName'))]),
    ...modeFaults(source.defaultMode, path.child('defaultMode')),
    ...itemFaults(source.items, path),
  ],
  configMap: (source, path) => [
    ...(source.name ? [] : [fieldError.required(path.child('name'))]),
    ...modeFaults(source.defaultMode, path.child('defaultMode')),
    ...itemFaults(source.items, path),
  ],
  downwardAPI: (source, path) => [...modeFaults(source.defaultMode, path.child('defaultMode')), ...downwardFaults(source.items, path)],
  projected: (source, path) => [...modeFaults(source.defaultMode, path.child('defaultMode')), ...projectionFaults(source.sources, path)],
  persistentVolumeClaim: ({ claimName }, path) => (claimName ? [] : [fieldError.required(path.child('claimName'))]),
  csi: ({ driver, nodePublishSecretRef }, path) => [
    ...csiDriverNameFaults(driver, path.child('driver')),
    ...secretFaults(nodePublishSecretRef, path, 'nodePublishSecretRef'),
  ],
  ephemeral: ({ volumeClaimTemplate: template }, path) => {
    const at = path.child('volumeClaimTemplate')
    return template ? validateClaimTemplate(template, at) : [fieldError.required(at)]
  },
  image: ({ reference, pullPolicy }, path) => [
    ...(reference ? [] : [fieldError.required(path.child('reference'))]),
    ...(pullPolicy ? oneOf(pullPolicy, ['Always', 'IfNotPresent', 'Never'], path.child('pullPolicy')) : []),
  ],
  gitRepo: ({ repository, directory }, path) => [
    ...(repository ? [] : [fieldError.required(path.child('repository'))]),
    ...(directory ? localPathFaults(directory, path.child('directory')) : []),
  ],
}

/** Names and sources of a pod's volumes. */
export function validateVolumes(volumes: readonly Volume[] | undefined, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  return (volumes ?? []).flatMap((volume, i) => {
    const at = path.index(i)
    const errors = sourceFaults(volume, at)
    const name = at.child('name')
    if (!volume.name) errors.push(fieldError.required(name))
    else errors.push(...faults(name, volume.name, isDns1123Label(volume.name)))
    if (volume.name && seen.has(volume.name)) errors.push(fieldError.duplicate(name, volume.name))
    seen.add(volume.name)
    return errors
  })
}

/** Sources in the order in which they are looked at: the first one present counts, whatever the order in the request. */
const sourceOrder: readonly Exclude<keyof Volume, 'name'>[] = [
  ...(['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret', 'nfs', 'iscsi', 'glusterfs', 'flocker'] as const),
  ...(['persistentVolumeClaim', 'rbd', 'cinder', 'cephfs', 'quobyte', 'downwardAPI', 'fc', 'flexVolume', 'configMap', 'azureFile'] as const),
  ...(['vsphereVolume', 'photonPersistentDisk', 'portworxVolume', 'azureDisk', 'storageos', 'projected', 'scaleIO', 'csi', 'ephemeral', 'image'] as const),
]

/** Upstream spells two of the fields otherwise when it forbids them. */
const forbiddenName: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' }

function sourceFaults(volume: Volume, path: FieldPath): FieldError[] {
  const sources = sourceOrder.filter((key) => volume[key] !== undefined)
  const first = sources[0]
  if (first === undefined) return [fieldError.required(path, 'must specify a volume type')]
  const more = sources.slice(1).map((source) => fieldError.forbidden(path.child(forbiddenName[source] ?? source), 'may not specify more than 1 volume type'))
  const check = rules[first] as ((source: unknown, path: FieldPath) => FieldError[]) | undefined
  return [...(check?.(volume[first], path.child(first)) ?? []), ...more]
}

function modeFaults(mode: number | undefined, path: FieldPath): FieldError[] {
  return mode !== undefined && (mode < 0 || mode > 0o777) ? [fieldError.invalid(path, mode, modeMessage)] : []
}

function noBacksteps(value: string, path: FieldPath): FieldError[] {
  return value.split('/').includes('..') ? [fieldError.invalid(path, value, "must not contain '..'")] : []
}

/** A path below the volume: relative, and not out of it. */
export function relativePathFaults(value: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (value.startsWith('/')) errors.push(fieldError.invalid(path, value, 'must be a relative path'))
  return [...errors, ...noBacksteps(value, path)]
}

/** As {@link relativePathFaults}, and no first element that starts with dots: those are the volume's own. */
function localPathFaults(value: string | undefined, path: FieldPath): FieldError[] {
  if (!value) return [fieldError.required(path)]
  const errors = relativePathFaults(value, path)
  if (value.startsWith('..') && !value.startsWith('../')) errors.push(fieldError.invalid(path, value, "must not start with '..'"))
  return errors
}

function itemFaults(items: readonly KeyToPath[] | undefined, path: FieldPath): FieldError[] {
  return (items ?? []).flatMap((item, i) => {
    const at = path.child('items').index(i)
    return [
      ...(item.key ? [] : [fieldError.required(at.child('key'))]),
      ...localPathFaults(item.path, at.child('path')),
      ...modeFaults(item.mode, at.child('mode')),
    ]
  })
}

function downwardFaults(items: NonNullable<Volume['downwardAPI']>['items'], path: FieldPath): FieldError[] {
  return (items ?? []).flatMap((item) => {
    const errors = localPathFaults(item.path, path.child('path'))
    if (item.fieldRef) {
      errors.push(...validateFieldRef(item.fieldRef, volumeFields, path.child('fieldRef')))
      if (item.resourceFieldRef) errors.push(fieldError.invalid(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
    } else if (item.resourceFieldRef) errors.push(...validateResourceFieldRef(item.resourceFieldRef, true, path.child('resourceFieldRef')))
    else errors.push(fieldError.required(path, 'one of fieldRef and resourceFieldRef is required'))
    return [...errors, ...modeFaults(item.mode, path.child('mode'))]
  })
}

const projectionOrder: readonly (keyof VolumeProjection)[] = [
  'secret',
  'configMap',
  'downwardAPI',
  'serviceAccountToken',
  'clusterTrustBundle',
  'podCertificate',
]

function projectionFaults(sources: readonly VolumeProjection[] | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const paths = new Set<string>()
  const claim = (value: string | undefined, at: FieldPath) => {
    if (value && paths.has(value)) errors.push(fieldError.invalid(at, value, 'conflicting duplicate paths'))
    if (value) paths.add(value)
  }
  for (const [i, source] of (sources ?? []).entries()) {
    const at = path.child('sources').index(i)
    const kinds = projectionOrder.filter((key) => source[key] !== undefined)
    if (kinds.length === 0) errors.push(fieldError.required(at, 'must specify at least one projection source'))
    for (const kind of kinds.slice(1)) errors.push(fieldError.forbidden(at.child(kind), 'may not specify more than 1 volume type'))
    for (const kind of ['secret', 'configMap'] as const) {
      const projection = source[kind]
      if (!projection) continue
      if (!projection.name) errors.push(fieldError.required(at.child(kind, 'name')))
      errors.push(...itemFaults(projection.items, at.child(kind)))
      for (const item of projection.items ?? []) claim(item.path, at)
    }
    if (source.downwardAPI) {
      errors.push(...downwardFaults(source.downwardAPI.items, at.child('downwardAPI')))
      for (const item of source.downwardAPI.items ?? []) claim(item.path, at)
    }
    if (source.serviceAccountToken) errors.push(...tokenFaults(source.serviceAccountToken, at.child('serviceAccountToken')))
    claim(source.serviceAccountToken?.path, at)
    if (source.clusterTrustBundle) errors.push(...trustBundleFaults(source.clusterTrustBundle, at.child('clusterTrustBundle')))
    claim(source.clusterTrustBundle?.path, at)
    if (source.podCertificate) {
      errors.push(...certificateFaults(source.podCertificate, at.child('podCertificate')))
      const { credentialBundlePath, keyPath, certificateChainPath } = source.podCertificate
      for (const file of [credentialBundlePath, keyPath, certificateChainPath]) claim(file, path)
    }
  }
  return errors
}

function tokenFaults({ expirationSeconds = 3600, path: file }: NonNullable<VolumeProjection['serviceAccountToken']>, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const at = path.child('expirationSeconds')
  if (expirationSeconds < tenMinutes) errors.push(fieldError.invalid(at, expirationSeconds, 'may not specify a duration less than 10 minutes'))
  else if (expirationSeconds > 2 ** 32) errors.push(fieldError.invalid(at, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'))
  return [...errors, ...localPathFaults(file, path.child('path'))]
}

function trustBundleFaults(source: NonNullable<VolumeProjection['clusterTrustBundle']>, path: FieldPath): FieldError[] {
  const { name, signerName, labelSelector, path: file } = source
  const errors: FieldError[] = []
  if (name !== undefined && signerName !== undefined) errors.push(fieldError.invalid(path, source, 'only one of name and signerName may be used'))
  if (name === undefined && signerName === undefined) errors.push(fieldError.required(path, 'either name or signerName must be specified'))
  if (name !== undefined && labelSelector)
    errors.push(fieldError.invalid(path.child('labelSelector'), labelSelector, 'labelSelector must be unset if name is specified'))
  if (signerName === '') errors.push(fieldError.required(path.child('signerName'), 'must be non-empty'))
  return [...errors, ...validateLabelSelector(labelSelector, path.child('labelSelector')), ...localPathFaults(file, path.child('path'))]
}

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519']

function certificateFaults(source: NonNullable<VolumeProjection['podCertificate']>, path: FieldPath): FieldError[] {
  const { signerName, userAnnotations, keyType, maxExpirationSeconds: seconds, credentialBundlePath, keyPath, certificateChainPath } = source
  const errors = [...validateSignerName(signerName, path.child('signerName')), ...validateUserAnnotations(userAnnotations, path.child('userAnnotations'))]
  if (!keyTypes.includes(keyType)) errors.push(fieldError.notSupported(path.child('keyType'), keyType ?? '', keyTypes))
  const { min, max } = certificateSecondsRange(signerName)
  const at = path.child('maxExpirationSeconds')
  if (seconds !== undefined && seconds < min) errors.push(fieldError.invalid(at, seconds, `if provided, maxExpirationSeconds must be >= ${min}`))
  if (seconds !== undefined && seconds > max) errors.push(fieldError.invalid(at, seconds, `if provided, maxExpirationSeconds must be <= ${max}`))
  if (!credentialBundlePath && !keyPath && !certificateChainPath)
    errors.push(fieldError.required(path, 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath'))
  for (const field of ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const) {
    const file = source[field]
    if (file) errors.push(...localPathFaults(file, path.child(field)))
  }
  return errors
}
