/**
 * Checks a namespace's existing pods against a stricter policy (L3), and returns warnings; the pods are not changed.
 * Upstream: k8s.io/pod-security-admission/admission/admission.go EvaluatePodsInNamespace (v0.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { type Evaluator, reasonsOf } from '#api/podSecurity/evaluate'
import { type LevelVersion, levelVersionText } from '#api/podSecurity/policy'
import type { Clock } from '#base/clock'

const mostPods = 3000
const longestMs = 1000

export interface ExistingPodsQuestion {
  readonly namespace: string
  readonly enforce: LevelVersion
  readonly pods: readonly Frozen<Pod>[]
  isExempt(runtimeClass: string | undefined): boolean
}

/** The warnings, in a fixed order. Checks at most 3,000 pods, for at most a second. */
export function warningsAboutExistingPods(evaluate: Evaluator, clock: Clock, { namespace, enforce, pods, isExempt }: ExistingPodsQuestion): readonly string[] {
  const deadline = clock.monotonicMs() + longestMs
  const inOrder = prioritized(pods.filter(({ spec }) => !isExempt(spec.runtimeClassName)))
  const found = new Map<string, string[]>()
  let checked = 0
  for (const { metadata, spec } of inOrder.slice(0, mostPods)) {
    const violations = evaluate(enforce, metadata, spec)
    if (violations.length > 0) {
      const reasons = reasonsOf(violations)
      const names = found.get(reasons)
      if (names) names.push(metadata.name ?? '')
      else found.set(reasons, [metadata.name ?? ''])
    }
    checked++
    if (clock.monotonicMs() >= deadline) break
  }
  const warnings: string[] = []
  if (checked < inOrder.length) warnings.push(`new PodSecurity enforce level only checked against the first ${checked} of ${inOrder.length} existing pods`)
  if (found.size > 0) warnings.push(`existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${levelVersionText(enforce)}"`)
  return [...warnings, ...[...found].map(([reasons, names]) => `${who(names)}: ${reasons}`).sort()]
}

/** One pod of each controller first: its other pods are most likely equal. */
function prioritized(pods: readonly Frozen<Pod>[]): readonly Frozen<Pod>[] {
  const seen = new Set<string>()
  const first: Frozen<Pod>[] = []
  const more: Frozen<Pod>[] = []
  for (const pod of pods) {
    const controller = controllerOf(pod)?.uid
    if (controller !== undefined && seen.has(controller)) more.push(pod)
    else first.push(pod)
    if (controller !== undefined) seen.add(controller)
  }
  return [...first, ...more]
}

function who(names: readonly string[]): string {
  const first = [...names].sort()[0] ?? ''
  if (names.length === 1) return first
  return names.length === 2 ? `${first} (and 1 other pod)` : `${first} (and ${names.length - 1} other pods)`
}
