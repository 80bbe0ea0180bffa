/**
 * PodSecurity (L3): checks pods against the Pod Security Standards in their namespace's labels. It refuses pods; for workloads with a pod template it
 * only warns and annotates.
 * Upstream: plugin/pkg/admission/security/podsecurity, k8s.io/pod-security-admission/admission/admission.go (v1.36).
 */
import type { Container, EphemeralContainer, Namespace, Pod } from '#api/gen/types/core.v1'
import { invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import type { Violation } from '#api/podSecurity/control'
import { controls } from '#api/podSecurity/controls/index'
import { createEvaluator, detailsOf } from '#api/podSecurity/evaluate'
import {
  areEquivalent,
  compareLevels,
  isFullyPrivileged,
  type LevelVersion,
  labelPrefix,
  levelVersionText,
  modes,
  type Policy,
  policyToEvaluate,
  privilegedLatest,
  sameLevelVersion,
} from '#api/podSecurity/policy'
import type { Clock } from '#base/clock'
import type { ObjectReader } from '../../core/objectReader.ts'
import { aggregateReasons } from '../../core/reasons.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { objectOf, refuse, requestNamespace } from '../attributes.ts'
import type { PodSecurityConfiguration } from '../podSecurity/configuration.ts'
import { warningsAboutExistingPods } from '../podSecurity/existingPods.ts'
import type { PodSecurityMetrics } from '../podSecurity/podSecurityMetrics.ts'
import { hasPodTemplate, podLikeOf } from '../podSecurity/podTemplates.ts'

export interface PodSecurityDeps {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly metrics: PodSecurityMetrics
}

const ignoredSubresources: ReadonlySet<string> = new Set(['exec', 'attach', 'binding', 'eviction', 'log', 'portforward', 'proxy', 'status'])
const namespaces = { group: '', resource: 'namespaces' }

export function podSecurity(deps: PodSecurityDeps, configuration: PodSecurityConfiguration): AdmissionPlugin {
  const { reader, metrics } = deps
  const { defaults } = configuration
  const evaluate = createEvaluator(controls)
  const policies = new WeakMap<object, ReturnType<typeof policyToEvaluate>>()
  const policyOf = (namespace: Frozen<Namespace>) => {
    const known = policies.get(namespace)
    if (known) return known
    const policy = policyToEvaluate(namespace.metadata.labels, defaults)
    policies.set(namespace, policy)
    return policy
  }
  const validatePodLike = (attributes: AdmissionAttributes, enforces: boolean) => {
    if (isExempt(deps, configuration, attributes)) return
    const namespace = reader.get<Namespace>(namespaces, '', attributes.namespace)
    if (!namespace) return missingNamespace(deps, attributes, enforces)
    const { policy, faults } = policyOf(namespace)
    if (faults.length === 0 && asksNothing(policy, enforces)) {
      if (!enforces) return
      metrics.evaluated(true, policy.enforce, 'enforce', attributes)
      return note(attributes, 'enforce-policy', levelVersionText(privilegedLatest))
    }
    const object = objectOf<KubeObject>(attributes)
    if (enforces && attributes.operation === 'UPDATE' && !isSignificant(object as Pod, attributes.oldObject as Frozen<Pod>)) return
    const pod = podLikeOf(attributes.resource, object)
    if (!pod?.spec) return
    if (configuration.exemptions.runtimeClasses.has(pod.spec.runtimeClassName ?? '')) {
      metrics.exempted(attributes)
      return note(attributes, 'exempt', 'runtimeClass')
    }
    if (faults.length > 0) {
      const texts = faults.map(({ field, body }) => `${field}: ${body}`)
      note(attributes, 'error', `Failed to parse policy: ${aggregateReasons(texts)}`)
      metrics.failed(false, attributes)
    }
    const { metadata = {}, spec } = pod
    judge(attributes, policy, enforces, metrics, (level) => evaluate(level, metadata, spec))
  }
  return {
    name: 'PodSecurity',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate(attributes) {
      const { resource, subresource } = attributes
      if (resource.group === '' && resource.resource === 'pods') {
        if (!ignoredSubresources.has(subresource)) validatePodLike(attributes, true)
      } else if (subresource !== '') return
      else if (hasPodTemplate(resource)) validatePodLike(attributes, false)
      else if (resource.group === '' && resource.resource === 'namespaces') {
        validateNamespace(attributes, configuration, (namespace, enforce) => {
          const pods = reader.list<Pod>({ group: '', resource: 'pods' }, namespace)
          const exempt = (runtimeClass = '') => configuration.exemptions.runtimeClasses.has(runtimeClass)
          for (const warning of warningsAboutExistingPods(evaluate, deps.clock, { namespace, enforce, pods, isExempt: exempt })) attributes.warn(warning)
        })
      }
    },
  }
}

function note(attributes: AdmissionAttributes, key: string, value: string): void {
  attributes.annotate?.(`${labelPrefix}${key}`, value)
}

function asksNothing(policy: Policy, enforces: boolean): boolean {
  return enforces ? isFullyPrivileged(policy) : policy.warn.level === 'privileged' && policy.audit.level === 'privileged'
}

function isExempt({ metrics }: PodSecurityDeps, { exemptions }: PodSecurityConfiguration, attributes: AdmissionAttributes): boolean {
  const why = exemptions.namespaces.has(attributes.namespace) ? 'namespace' : exemptions.usernames.has(attributes.user.name) ? 'user' : undefined
  if (why === undefined) return false
  metrics.exempted(attributes)
  note(attributes, 'exempt', why)
  return true
}

function missingNamespace({ metrics }: PodSecurityDeps, attributes: AdmissionAttributes, enforces: boolean): void {
  metrics.failed(true, attributes)
  const error = internalError(new Error(`failed to lookup namespace "${attributes.namespace}"`))
  const why = `namespaces "${attributes.namespace}" not found`
  note(attributes, 'error', enforces ? `${error.message}: ${why}` : `failed to lookup namespace "${attributes.namespace}": ${why}`)
  if (enforces) throw error
}

/** Refuses by the enforce level, annotates by audit, warns by warn; a level that two modes share is evaluated once. */
function judge(
  attributes: AdmissionAttributes,
  policy: Policy,
  enforces: boolean,
  metrics: PodSecurityMetrics,
  evaluate: (level: LevelVersion) => readonly Violation[],
): void {
  const seen: { readonly level: LevelVersion; readonly violations: readonly Violation[] }[] = []
  const violationsOf = (level: LevelVersion) => {
    const known = seen.find((one) => sameLevelVersion(one.level, level))
    if (known) return known.violations
    const violations = evaluate(level)
    seen.push({ level, violations })
    return violations
  }
  const enforced = enforces ? violationsOf(policy.enforce) : []
  if (enforces) {
    note(attributes, 'enforce-policy', levelVersionText(policy.enforce))
    metrics.evaluated(enforced.length === 0, policy.enforce, 'enforce', attributes)
  }
  const audited = violationsOf(policy.audit)
  if (audited.length > 0) {
    note(attributes, 'audit-violations', `would violate PodSecurity "${levelVersionText(policy.audit)}": ${detailsOf(audited)}`)
    metrics.evaluated(false, policy.audit, 'audit', attributes)
  }
  if (enforced.length > 0) throw refuse(attributes, `violates PodSecurity "${levelVersionText(policy.enforce)}": ${detailsOf(enforced)}`)
  const warned = violationsOf(policy.warn)
  if (warned.length === 0) return
  attributes.warn(`would violate PodSecurity "${levelVersionText(policy.warn)}": ${detailsOf(warned)}`)
  metrics.evaluated(false, policy.warn, 'warn', attributes)
}

function validateNamespace(
  attributes: AdmissionAttributes,
  { defaults, exemptions }: PodSecurityConfiguration,
  warnOfPods: (namespace: string, enforce: LevelVersion) => void,
): void {
  const { metadata } = objectOf<Namespace>(attributes)
  const name = requestNamespace(attributes)
  const isCreate = attributes.operation === 'CREATE'
  const { policy, faults } = policyToEvaluate(metadata.labels, defaults)
  const before = isCreate ? undefined : policyToEvaluate(attributes.oldObject?.metadata.labels, defaults)
  const isKnownFault = before && JSON.stringify(before.faults) === JSON.stringify(faults)
  if (faults.length > 0 && !isKnownFault) throw invalid(attributes.kind, name, faults)
  if (before && !isStricter(policy.enforce, before.policy.enforce)) return
  if (exemptions.namespaces.has(name)) {
    const warning = exemptionWarning(name, policy, defaults, metadata.labels ?? {})
    if (warning !== '') attributes.warn(warning)
  } else if (before) warnOfPods(name, policy.enforce)
}

/** Whether pods that were allowed may be refused now. */
function isStricter(now: LevelVersion, before: LevelVersion): boolean {
  if (sameLevelVersion(now, before) || now.level === 'privileged') return false
  return now.version !== before.version || compareLevels(now.level, before.level) > 0
}

/** Warns that the labels of an exempt namespace have no effect. */
function exemptionWarning(name: string, policy: Policy, defaults: Policy, labels: Readonly<Record<string, string>>): string {
  if (isFullyPrivileged(policy) || areEquivalent(policy, defaults)) return ''
  const asked = modes.filter((mode) => {
    const label = `${labelPrefix}${mode}`
    return policy[mode].level !== 'privileged' && (labels[label] !== undefined || labels[`${label}-version`] !== undefined)
  })
  const shown = asked.map((mode) => `${mode}=${levelVersionText(policy[mode])}`).join(', ')
  return `namespace "${name}" is exempt from Pod Security, and the policy (${shown}) will be ignored`
}

/** Whether an update is checked: among the changes that a pod allows, only images and new containers matter. */
function isSignificant({ spec }: Pod, { spec: old }: Frozen<Pod>): boolean {
  type Images = readonly Pick<Container | EphemeralContainer, 'name' | 'image'>[] | undefined
  const differ = (now: Images = [], before: Images = []) => now.length !== before.length || now.some(({ image }, at) => image !== before[at]?.image)
  if (differ(spec.containers, old.containers) || differ(spec.initContainers, old.initContainers)) return true
  return (spec.ephemeralContainers ?? []).some(({ name, image }) => old.ephemeralContainers?.find((one) => one.name === name)?.image !== image)
}
