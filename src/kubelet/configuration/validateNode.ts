/**
 * Validates the fields of a KubeletConfiguration about the node, reservations and images (L3, pure); validate.ts validates the others.
 * Upstream: kubelet/apis/config/validation/validation.go, validation_reserved_memory.go, kubelet/images/pullmanager/image_pull_policies.go (v1.36).
 */
import { isQuantity, quantitySign } from '#api/machinery/quantity'
import { curveNames, unknownCurves } from '#base/tlsCurves'
import { parseCpuSet } from '../core/cpuSet.ts'
import { withoutTag } from '../core/imageReference.ts'
import { enforcementFaults, gateEnabled } from '../core/resourceConfig.ts'
import type { ConfigurationDocument } from './document.ts'

/** @param document complete. All faults, each a sentence without its beginning. */
export function nodeFaults(document: ConfigurationDocument): string[] {
  return [
    ...taints(document),
    ...enforcementFaults({
      enforced: (document.enforceNodeAllocatable as string[] | undefined) ?? [],
      systemReservedCgroup: (document.systemReservedCgroup as string | undefined) ?? '',
      kubeReservedCgroup: (document.kubeReservedCgroup as string | undefined) ?? '',
      cgroupsPerQOS: document.cgroupsPerQOS !== false,
    }),
    ...allowlist(document),
    ...reservedCpus(document),
    ...reservedMemory(document),
    ...curves(document),
    ...strategy(document),
  ]
}

interface Taint {
  readonly key?: string
  readonly value?: string
  readonly effect?: string
  readonly timeAdded?: string
}

function taints({ registerWithTaints = [] }: ConfigurationDocument): string[] {
  return (registerWithTaints as Taint[]).flatMap(({ key = '', value = '', effect = '', timeAdded }) => [
    ...(/^[A-Za-z0-9][\w./-]*$/.test(key) && ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect)
      ? []
      : [`invalid taint: {${key} ${value} ${effect}}: registerWithTaints needs a key, and NoSchedule, PreferNoSchedule or NoExecute as its effect`]),
    ...(timeAdded === undefined ? [] : ['taint.TimeAdded is not nil']),
  ])
}

function allowlist({ imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist = [] }: ConfigurationDocument): string[] {
  const patterns = preloadedImagesVerificationAllowlist as string[]
  if (patterns.length > 0 && policy !== 'NeverVerifyAllowlistedImages') {
    return ['can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"']
  }
  return patterns.flatMap((pattern) => {
    const fault = patternFault(pattern)
    return fault === undefined ? [] : [`invalid image pattern in \`preloadedImagesVerificationAllowlist\`: ${fault}`]
  })
}

function patternFault(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return `leading/trailing spaces are not allowed: ${pattern}`
  const isWildcard = pattern.endsWith('/*')
  const name = isWildcard ? pattern.slice(0, -1) : pattern
  if (name === '') return `the supplied pattern is too short: ${pattern}`
  if (name.includes('*')) return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`
  if (isWildcard) return name === '/' ? 'at least registry hostname is required' : undefined
  return withoutTag(name) === name ? undefined : `neither tag nor digest is accepted in an image reference: ${pattern}`
}

function reservedCpus({ reservedSystemCPUs }: ConfigurationDocument): string[] {
  try {
    parseCpuSet((reservedSystemCPUs as string | undefined) ?? '')
    return []
  } catch (error) {
    return [`unable to parse reservedSystemCPUs (--reserved-cpus) ${reservedSystemCPUs}, error: ${(error as Error).message}`]
  }
}

interface Reservation {
  readonly numaNode?: number
  readonly limits?: Readonly<Record<string, string>>
}

function reservedMemory({ reservedMemory: list = [] }: ConfigurationDocument): string[] {
  const seen = new Set<string>()
  return (list as Reservation[]).flatMap(({ numaNode = 0, limits = {} }) =>
    Object.entries(limits).flatMap(([name, amount]) => {
      const isKnown = name === 'memory' || name.startsWith('hugepages-')
      const isSecond = seen.has(`${numaNode} ${name}`)
      seen.add(`${numaNode} ${name}`)
      const supported = 'only [memory hugepages-<HugePageSize>] is accepted'
      return [
        ...(isKnown ? [] : [`the limit type "${name}" for NUMA node ${numaNode} is not supported, ${supported}`]),
        ...(isQuantity(amount) && quantitySign(amount) !== 0 ? [] : [`reserved memory may not be zero for NUMA node ${numaNode} and resource "${name}"`]),
        ...(isSecond ? [`the reserved memory has a duplicate value for NUMA node ${numaNode} and resource "${name}"`] : []),
      ]
    }),
  )
}

function curves({ tlsCurvePreferences = [] }: ConfigurationDocument): string[] {
  const known = Object.entries(curveNames).map(([id, name]) => `${id} (${name})`)
  return unknownCurves(tlsCurvePreferences as number[]).map(
    (id) => `tlsCurvePreferences has ${id}, which this kubelet cannot exchange keys with: use some of ${known.join(', ')}`,
  )
}

function strategy({ configMapAndSecretChangeDetectionStrategy: strategy, memoryReservationPolicy, featureGates = {} }: ConfigurationDocument): string[] {
  const gates = { featureGates: featureGates as Record<string, boolean> }
  return [
    ...(['Get', 'Cache', 'Watch'].includes(strategy as string)
      ? []
      : [`unknown configmap and secret manager mode: ${strategy}: configMapAndSecretChangeDetectionStrategy is Get, Cache or Watch`]),
    ...(memoryReservationPolicy === 'TieredReservation' && !gateEnabled(gates, 'MemoryQoS')
      ? ['memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled']
      : []),
  ]
}
