/**
 * Holds a pod against a level and version of the Pod Security Standards (L1, pure).
 * Upstream: k8s.io/pod-security-admission/policy/registry.go (v0.36).
 */
import type { PodSpec } from '#api/gen/types/core.v1'
import type { Frozen, ObjectMeta } from '#api/machinery/meta'
import { greatest } from '#base/extremes'
import type { CheckPod, Control, Violation } from './control.ts'
import type { LevelVersion } from './policy.ts'

/** The violations of a pod, in the order in which they are reported. */
export type Evaluator = (policy: LevelVersion, metadata: Frozen<Partial<ObjectMeta>>, spec: Frozen<PodSpec>) => readonly Violation[]

/** Sorts the controls into levels and versions once. A version later than any control's own is the newest. */
export function createEvaluator(controls: readonly Control[]): Evaluator {
  const newest = greatest(controls.flatMap(({ revisions }) => revisions.map(({ since }) => since)))
  const versions = Array.from({ length: newest + 1 }, (_, version) => ({
    baseline: checksOf(controls, 'baseline', version),
    restricted: checksOf(controls, 'restricted', version),
  }))
  return ({ level, version }, metadata, spec) => {
    if (level === 'privileged') return []
    const checks = versions[version === 'latest' ? newest : Math.min(version, newest)]?.[level] ?? []
    return checks.map((check) => check(metadata, spec)).filter((violation) => violation !== undefined)
  }
}

/** Baseline's controls first, then restricted's, each by their names. */
function checksOf(controls: readonly Control[], level: Control['level'], version: number): readonly CheckPod[] {
  const active = [...controls]
    .sort((a, b) => (a.level === b.level ? compare(a.id, b.id) : compare(a.level, b.level)))
    .flatMap(({ id, level: of, revisions }) => {
      const revision = revisions.findLast(({ since }) => since <= version)
      return revision && (of === 'baseline' || level === 'restricted') ? [{ id, ...revision }] : []
    })
  const overridden = new Set(active.flatMap(({ overrides = [] }) => overrides))
  return active.filter(({ id }) => !overridden.has(id)).map(({ check }) => check)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Only what is wrong: `host namespaces, privileged`. */
export function reasonsOf(violations: readonly Violation[]): string {
  return violations.map(({ reason }) => reason).join(', ')
}

/** And who does it: `host namespaces (hostPID=true), privileged (container "a" …)`. */
export function detailsOf(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ')
}
