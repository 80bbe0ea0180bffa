/**
 * What a control of the Pod Security Standards is (L1, pure), and the words in which controls name who breaks them.
 * Upstream: k8s.io/pod-security-admission/policy/{checks,helpers,visitor}.go (v0.36).
 */
import type { Container, EphemeralContainer, PodSpec } from '#api/gen/types/core.v1'
import type { Frozen, ObjectMeta } from '#api/machinery/meta'

/** What a control has against a pod. */
export interface Violation {
  /** Succinct: `privileged`. */
  readonly reason: string
  /** The offending parts and their fault: `container "a" must not set …`. */
  readonly detail: string
}

export type CheckPod = (metadata: Frozen<Partial<ObjectMeta>>, spec: Frozen<PodSpec>) => Violation | undefined

export interface Control {
  readonly id: string
  /** Baseline's controls are restricted's, too, except those that it overrides. */
  readonly level: 'baseline' | 'restricted'
  /** By the minor version of v1 from which they count, ascending. */
  readonly revisions: readonly { readonly since: number; readonly check: CheckPod; readonly overrides?: readonly string[] }[]
}

export type AnyContainer = Frozen<Container> | Frozen<EphemeralContainer>

/** Every container of a pod: those of its start, its own, those of debugging. */
export function containersOf(spec: Frozen<PodSpec>): readonly AnyContainer[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])]
}

/** The names of the containers that a question picks. */
export function namesWhere(spec: Frozen<PodSpec>, picks: (container: AnyContainer) => boolean): string[] {
  return containersOf(spec)
    .filter(picks)
    .map(({ name }) => name)
}

/** `"a", "b"`. */
export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(', ')
}

/** `container` or `containers`, by how many there are. */
export function plural(word: string, count: number): string {
  return count === 1 ? word : `${word}s`
}

/** `containers "a", "b"`. */
export function named(word: string, names: readonly string[]): string {
  return `${plural(word, names.length)} ${quoted(names)}`
}

/** The parts that set a forbidden value, as in `pod and container "a"`; empty if there are none. */
export function setters(byPod: boolean, containers: readonly string[]): string {
  return [...(byPod ? ['pod'] : []), ...(containers.length > 0 ? [named('container', containers)] : [])].join(' and ')
}

/** Each once, in order. */
export function distinct(values: Iterable<string>): string[] {
  return [...new Set(values)].sort()
}

/** A control that pods for Windows are exempt from: the API refuses there what it asks for. */
export function exceptWindows(check: CheckPod): CheckPod {
  return (metadata, spec) => (spec.os?.name === 'windows' ? undefined : check(metadata, spec))
}

/** Skips a control for pods in a user namespace, where root has no rights outside. */
export function exceptUserNamespaces(check: CheckPod): CheckPod {
  return (metadata, spec) => (spec.hostUsers === false ? undefined : check(metadata, spec))
}
