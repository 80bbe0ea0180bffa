/**
 * Decides by BackendTLSPolicies which backends are spoken to over TLS, and what their statuses say (L3, pure). The oldest policy of a
 * target counts, and one for a port before one for its whole Service. Upstream: apis/v1/backendtlspolicy_types.go (v1.6.3).
 */
import type { Frozen } from '#api/machinery/meta'
import type { BackendTls, SubjectAltName } from '../route.ts'
import type { BackendTlsPolicy, PolicyTarget } from './kinds.ts'
import { fails, holds, type Outcome } from './outcome.ts'
import type { ClusterView } from './view.ts'

export interface CompiledPolicy {
  /** Undefined: connections fail, because their backend cannot be verified. */
  readonly tls: BackendTls | undefined
  readonly accepted: Outcome
  readonly resolved: Outcome
}

/** `namespace/name` of each Service that a policy is for. */
export function targetServicesOf({ metadata, spec }: Frozen<BackendTlsPolicy>): string[] {
  return [...new Set((spec.targetRefs ?? []).filter(isService).map(({ name }) => `${metadata.namespace}/${name}`))]
}

/** `namespace/name` of each ConfigMap with authorities. */
export function configMapsOf({ metadata, spec }: Frozen<BackendTlsPolicy>): string[] {
  const refs = spec.validation?.caCertificateRefs ?? []
  return [...new Set(refs.filter(isConfigMap).map(({ name }) => `${metadata.namespace}/${name}`))]
}

const isService = ({ group, kind }: Frozen<PolicyTarget>) => (group ?? '') === '' && kind === 'Service'
const isConfigMap = ({ group, kind }: Frozen<PolicyTarget>) => (group ?? '') === '' && kind === 'ConfigMap'

/** How a port of a Service is spoken to; undefined: in clear text. @param portName empty: the port has no name */
export function backendTlsOf(service: string, portName: string, view: ClusterView): BackendTls | 'unverifiable' | undefined {
  const policy = (portName === '' ? undefined : winnerOf(service, portName, view)) ?? winnerOf(service, undefined, view)
  return policy && (compilePolicy(policy, view).tls ?? 'unverifiable')
}

/** The policy that counts for a port, or for the whole Service, when no name is given. */
function winnerOf(service: string, sectionName: string | undefined, view: ClusterView): Frozen<BackendTlsPolicy> | undefined {
  let winner: Frozen<BackendTlsPolicy> | undefined
  for (const policy of view.policiesFor(service)) {
    const isFor = (policy.spec.targetRefs ?? []).some(
      (ref) => isService(ref) && `${policy.metadata.namespace}/${ref.name}` === service && (ref.sectionName || undefined) === sectionName,
    )
    if (isFor && (!winner || ageOf(policy) < ageOf(winner))) winner = policy
  }
  return winner
}

const ageOf = ({ metadata: { creationTimestamp = '', namespace, name } }: Frozen<BackendTlsPolicy>) => `${creationTimestamp} ${namespace}/${name}`

/** Reads the certificates of a policy. One of several ConfigMaps that cannot be used leaves the others; the outcomes say why. */
export function compilePolicy({ metadata, spec }: Frozen<BackendTlsPolicy>, view: ClusterView): CompiledPolicy {
  const { caCertificateRefs = [], wellKnownCACertificates, hostname = '', subjectAltNames = [] } = spec.validation ?? {}
  const tls = (authorities: string | undefined, version: string): BackendTls => ({
    id: `${metadata.uid} ${metadata.generation} ${version}`,
    hostname,
    authorities,
    subjectAltNames: subjectAltNames.map(altNameOf),
  })
  const resolved = holds('ResolvedRefs')
  if (caCertificateRefs.length === 0) {
    if (wellKnownCACertificates === 'System') return { tls: tls(undefined, ''), accepted: acceptedWith(spec.options), resolved }
    const message = wellKnownCACertificates ? `The set ${wellKnownCACertificates} of certificates is not known` : 'The policy names no certificates'
    return { tls: undefined, accepted: fails('Accepted', 'Invalid', message), resolved }
  }
  const usable: { readonly pem: string; readonly version: string }[] = []
  let problem: Outcome | undefined
  for (const ref of caCertificateRefs) {
    const found = isConfigMap(ref) ? view.authoritiesIn(`${metadata.namespace}/${ref.name}`) : undefined
    if (!found) problem ??= fails('ResolvedRefs', 'InvalidKind', `${ref.kind} ${ref.name} is not a ConfigMap`)
    else if ('problem' in found) problem ??= fails('ResolvedRefs', 'InvalidCACertificateRef', `ConfigMap ${ref.name}: ${found.problem}`)
    else usable.push(found)
  }
  const none = usable.length === 0
  const accepted = none ? fails('Accepted', 'NoValidCACertificate', problem?.message ?? '') : acceptedWith(spec.options)
  const pem = usable.map((one) => one.pem).join('\n')
  return { tls: none ? undefined : tls(pem, usable.map(({ version }) => version).join()), accepted, resolved: problem ?? resolved }
}

function acceptedWith(options: Frozen<Record<string, string>> = {}): Outcome {
  const names = Object.keys(options)
  return holds('Accepted', names.length > 0 ? `Options are not supported and have no effect: ${names.join(', ')}` : '')
}

function altNameOf({ type, hostname = '', uri = '' }: { type: string; hostname?: string; uri?: string }): SubjectAltName {
  return type === 'URI' ? { type, value: uri } : { type: 'Hostname', value: hostname.toLowerCase() }
}

/** What a policy's status says about each Gateway that uses it. */
export function policyOutcomes(policy: Frozen<BackendTlsPolicy>, view: ClusterView): Outcome[] {
  const { accepted, resolved } = compilePolicy(policy, view)
  const targeted = (policy.spec.targetRefs ?? []).map((ref) => targetOutcome(policy, ref, view)).find((outcome) => outcome !== undefined)
  return [targeted ?? accepted, resolved]
}

/** Undefined: the target takes the policy. */
function targetOutcome(policy: Frozen<BackendTlsPolicy>, ref: Frozen<PolicyTarget>, view: ClusterView): Outcome | undefined {
  if (!isService(ref)) return fails('Accepted', 'Invalid', `Targets of kind ${ref.kind} are not supported`)
  const key = `${policy.metadata.namespace}/${ref.name}`
  const service = view.service(key)
  if (!service) return fails('Accepted', 'TargetNotFound', `There is no Service ${key}`)
  if (ref.sectionName && !service.spec?.ports?.some(({ name }) => name === ref.sectionName)) {
    return fails('Accepted', 'TargetNotFound', `Service ${key} has no port of the name ${ref.sectionName}`)
  }
  const winner = winnerOf(key, ref.sectionName || undefined, view)
  if (!winner || ageOf(winner) === ageOf(policy)) return undefined
  return fails(
    'Accepted',
    'Conflicted',
    `The older policy ${winner.metadata.name} has the target ${ref.name}${ref.sectionName ? `, port ${ref.sectionName}` : ''}`,
  )
}
