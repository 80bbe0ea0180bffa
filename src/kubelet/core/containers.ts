/** Pure questions about the containers of a pod spec (L3). Upstream: api/v1/pod/util.go, kubelet/container/helpers.go (v1.36). */
import type { Container, ContainerRestartRule, ContainerStatus, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export type FrozenPod = Frozen<Pod>
export type FrozenContainer = Frozen<Container>

/** A sidecar: an init container that keeps running together with the later containers. */
export function isRestartableInitContainer(container: FrozenContainer): boolean {
  return container.restartPolicy === 'Always'
}

export type ContainerKind = 'init' | 'regular' | 'ephemeral'

export interface KindedContainer {
  readonly kind: ContainerKind
  readonly container: FrozenContainer
}

/** Every container of the pod, in the order init, regular, ephemeral. */
export function allContainers(pod: FrozenPod): KindedContainer[] {
  const kinded = (kind: ContainerKind) => (container: FrozenContainer) => ({ kind, container })
  return [
    ...(pod.spec.initContainers ?? []).map(kinded('init')),
    ...pod.spec.containers.map(kinded('regular')),
    ...(pod.spec.ephemeralContainers ?? []).map(kinded('ephemeral')),
  ]
}

export function findSpecContainer(pod: FrozenPod, name: string): FrozenContainer | undefined {
  return allContainers(pod).find(({ container }) => container.name === name)?.container
}

/** The first rule that matches this exit code. */
export function matchingRestartRule(container: FrozenContainer, exitCode: number): Frozen<ContainerRestartRule> | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const isListed = exitCodes?.values?.includes(exitCode) ?? false
    return exitCodes?.operator === 'In' ? isListed : exitCodes?.operator === 'NotIn' && !isListed
  })
}

/** Whether a container that exited with `exitCode` runs again: its rules, then its own policy, then the pod's. */
export function shouldRestart(pod: FrozenPod, container: FrozenContainer, exitCode: number): boolean {
  if (matchingRestartRule(container, exitCode)) return true
  const policy = container.restartPolicy ?? pod.spec.restartPolicy ?? 'Always'
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0)
}

/** The same for an init container that is not a sidecar: success ends it. */
export function shouldRestartInit(pod: FrozenPod, container: FrozenContainer, exitCode: number): boolean {
  return exitCode !== 0 && shouldRestart(pod, container, exitCode)
}

/** The waiting reason of containers that were removed from the runtime because all containers of the pod restart. */
export const restartingAllReason = 'RestartingAllContainers'

export function statusOf(statuses: readonly Frozen<ContainerStatus>[] | undefined, name: string): Frozen<ContainerStatus> | undefined {
  return statuses?.find((status) => status.name === name)
}

/** The same for many names: a pod may have thousands of containers. */
export function statusFinder(statuses: readonly Frozen<ContainerStatus>[] | undefined): (name: string) => Frozen<ContainerStatus> | undefined {
  const byName = new Map((statuses ?? []).toReversed().map((status) => [status.name, status]))
  return (name) => byName.get(name)
}

export function isTerminalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** 'name_namespace(uid)': how upstream's messages name a pod. */
export function formatPod(pod: FrozenPod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`
}

/** Upstream's annotation for pods that came from a file or URL rather than from the API server. */
export const configSourceAnnotation = 'kubernetes.io/config.source'
export const configHashAnnotation = 'kubernetes.io/config.hash'
export const configMirrorAnnotation = 'kubernetes.io/config.mirror'

/** Containers from which on work over all of a pod's takes tens of milliseconds. */
const manyContainers = 500

/** Lets others have their turn before work over all containers of a pod that has many. */
export async function turnIfLarge({ spec }: FrozenPod): Promise<void> {
  if (spec.containers.length + (spec.initContainers?.length ?? 0) >= manyContainers) await new Promise((resolve) => setImmediate(resolve))
}

export function isStaticPod(pod: FrozenPod): boolean {
  const source = pod.metadata.annotations?.[configSourceAnnotation]
  return source !== undefined && source !== 'api'
}
