/**
 * Validation of writes to a pod's status (L1): addresses are valid, and a container that has ended for good does not start again.
 * Upstream: pkg/apis/core/validation ValidatePodStatusUpdate (v1.36).
 */
import type { Container, ContainerStatus, Pod, PodSpec } from '#api/gen/types/core.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { invalidIpMessage, ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label, isDns1123Subdomain, isQualifiedName } from '#api/machinery/names'
import { immutableMessage, validateNonNegative } from '#api/machinery/objectMeta'
import { faults, oneOf } from '../../rules.ts'
import { annotationFaults } from './validateAnnotations.ts'

/** @param root of the pod */
export function validatePodStatusUpdate(pod: Pod, old: Frozen<Pod>, root: FieldPath): FieldError[] {
  const path = root.child('status')
  const { status } = pod
  const errors = [...annotationFaults(pod, old, root.child('metadata', 'annotations')), ...conditionFaults(pod)]
  if ((pod.spec.nodeName ?? '') !== (old.spec.nodeName ?? '')) errors.push(fieldError.forbidden(path.child('nodeName'), 'may not be changed directly'))
  const nominated = status.nominatedNodeName
  if (nominated && nominated !== old.status?.nominatedNodeName)
    errors.push(...faults(path.child('nominatedNodeName'), nominated, isDns1123Subdomain(nominated)))
  if (old.status?.qosClass && status.qosClass !== old.status.qosClass)
    errors.push(fieldError.invalid(path.child('qosClass'), status.qosClass, immutableMessage))
  errors.push(...validateNonNegative(status.observedGeneration, path.child('observedGeneration')))
  for (const [list, policyOf] of Object.entries(restartPolicies)) {
    const field = list as keyof typeof restartPolicies
    errors.push(...restartFaults(status[field], old.status?.[field], policyOf(old.spec), path.child(field)))
  }
  errors.push(...claimFaults(pod, path.child('resourceClaimStatuses')))
  errors.push(...extendedClaimFaults(pod, path.child('extendedResourceClaimStatus')))
  if (status.podIPs) errors.push(...addressFaults(status.podIPs, path.child('podIPs')))
  const [firstHost] = status.hostIPs ?? []
  if (firstHost && status.hostIP !== firstHost.ip)
    errors.push(fieldError.invalid(path.child('hostIPs').index(0).child('ip'), firstHost.ip, 'must be equal to `hostIP`'))
  return [...errors, ...addressFaults(status.hostIPs ?? [], path.child('hostIPs'))]
}

/** The path is upstream's. */
function conditionFaults(pod: Pod): FieldError[] {
  return (pod.status.conditions ?? []).flatMap(({ type, status }, i) => {
    const at = FieldPath.of('metadata', 'conditions').index(i)
    const known = systemConditions.includes(type) ? oneOf(status, ['False', 'True', 'Unknown'], at.child('status')) : []
    return [...known, ...faults(at.child('Type'), type, isQualifiedName(type))]
  })
}

const systemConditions: readonly string[] = ['ContainersReady', 'Initialized', 'Ready', 'PodScheduled']

type RestartPolicy = (name: string) => string | undefined

/** Whether a container may restart: a sidecar always, an ephemeral one never, others by their own or the pod's restart policy. */
const restartPolicies = {
  containerStatuses: ownPolicy('containers'),
  initContainerStatuses: ownPolicy('initContainers'),
  ephemeralContainerStatuses: () => () => 'Never',
} as const

function ownPolicy(list: 'containers' | 'initContainers'): (spec: Frozen<PodSpec>) => RestartPolicy {
  return (spec) => {
    const byName = new Map((spec[list] ?? []).map((one) => [one.name, one]))
    return (name) => policyIn(spec, byName.get(name))
  }
}

function policyIn(spec: Frozen<PodSpec>, container: Frozen<Container> | undefined): string | undefined {
  return container?.restartPolicyRules?.length ? 'Always' : (container?.restartPolicy ?? spec.restartPolicy)
}

function restartFaults(
  now: readonly ContainerStatus[] | undefined,
  before: readonly Frozen<ContainerStatus>[] | undefined,
  policyOf: RestartPolicy,
  path: FieldPath,
): FieldError[] {
  const running = new Set((now ?? []).filter(({ state }) => !state?.terminated).map(({ name }) => name))
  return (before ?? []).flatMap(({ name, state }, i) => {
    const policy = policyOf(name)
    const mayStart = policy === 'Always' || (policy === 'OnFailure' && state?.terminated?.exitCode !== 0)
    if (!state?.terminated || mayStart) return []
    return running.has(name) ? [fieldError.forbidden(path.index(i).child('state'), 'may not be transitioned to non-terminated state')] : []
  })
}

function claimFaults(pod: Pod, path: FieldPath): FieldError[] {
  const known = new Set((pod.spec.resourceClaims ?? []).map(({ name }) => name))
  return (pod.status.resourceClaimStatuses ?? []).flatMap(({ name, resourceClaimName }, i) => {
    const at = path.index(i)
    const errors = [...faults(at.child('name'), name, isDns1123Label(name))]
    if (resourceClaimName !== undefined) errors.push(...faults(at.child('resourceClaimName'), resourceClaimName, isDns1123Subdomain(resourceClaimName)))
    if (!known.has(name)) errors.push(fieldError.invalid(at.child('name'), name, 'must match the name of an entry in `spec.resourceClaims`'))
    return errors
  })
}

/** Upstream: validatePodExtendedResourceClaimStatus. */
function extendedClaimFaults({ spec, status }: Pod, path: FieldPath): FieldError[] {
  if (!status.extendedResourceClaimStatus) return []
  const { requestMappings = [], resourceClaimName } = status.extendedResourceClaimStatus
  const errors = requestMappings.length > 0 ? [] : [fieldError.required(path.child('requestMappings'), 'at least one request mapping is required')]
  const seen = new Set<string>()
  for (const [i, { containerName, resourceName, requestName }] of requestMappings.entries()) {
    const at = path.child('requestMappings').index(i)
    const container = [...(spec.initContainers ?? []), ...spec.containers].find(({ name }) => name === containerName)
    if (!container) errors.push(fieldError.invalid(at.child('containerName'), containerName, unknownContainer))
    else if (container.resources?.requests?.[resourceName] === undefined)
      errors.push(fieldError.invalid(at.child('resourceName'), resourceName, unknownResource))
    errors.push(...faults(path.child('requestName'), requestName, isDns1123Label(requestName)))
    const key = `${containerName}/${resourceName}/${requestName}`
    if (seen.has(key))
      for (const [field, value] of Object.entries({ containerName, resourceName, requestName })) errors.push(fieldError.duplicate(at.child(field), value))
    seen.add(key)
  }
  const name = path.child('resourceClaimName')
  if (!resourceClaimName) return [...errors, fieldError.required(name, '')]
  return [...errors, ...faults(name, resourceClaimName, isDns1123Subdomain(resourceClaimName))]
}

const unknownContainer = 'must match the name of an entry in spec.initContainers.name or spec.containers.name'
const unknownResource = 'must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests'

/** At most one of each family. */
function addressFaults(addresses: readonly { ip: string }[], path: FieldPath): FieldError[] {
  const errors = addresses.flatMap(({ ip }, i) => (ipFamily(ip) === undefined ? [fieldError.invalid(path.index(i), ip, invalidIpMessage)] : []))
  if (addresses.length < 2) return errors
  const families = new Set(addresses.map(({ ip }) => ipFamily(ip)))
  if (addresses.length > 2 || families.size < 2) errors.push(fieldError.invalid(path, addresses, 'may specify no more than one IP for each IP family'))
  for (const i of repeatedAt(addresses.map(({ ip }) => ip))) errors.push(fieldError.duplicate(path.index(i), addresses[i]))
  return errors
}
