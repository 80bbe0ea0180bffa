/**
 * The behaviour of simulated pods (L3): defaults, overridden by code, overridden by a pod's annotations. It is declared so that tests and scale runs
 * show what they simulate.
 */
import type { Random } from '#base/random'
import { annotationKeys } from '../../core/runtimeLabels.ts'
import { annotatedBehaviour, annotatedPull } from './annotations.ts'
import type { SimulatedBehaviour, SimulatedContainer, SimulatedPull } from './behaviour.ts'
import type { ContainerFacts, SandboxFacts } from './facts.ts'

export interface SimulatedProfile {
  readonly sandboxDelayMs: number
  readonly startDelayMs: number
  readonly stopDelayMs: number
  readonly pullDelayMs: number
  readonly imageSizeBytes: number
  /** Called whenever the container starts, stops, is probed or inspected: the result may change. */
  behave(container: SimulatedContainer): SimulatedBehaviour
  /** The course of a pull for that pod. */
  pull(image: string, pod: Pick<SimulatedContainer, 'namespace' | 'podName' | 'labels' | 'annotations'>): SimulatedPull
}

/**
 * Pods start within a second and keep running; init containers, the pods of Jobs and pods that never restart succeed after a second; containers use a
 * tenth of their CPU request and of their memory limit.
 */
export const defaultProfile: SimulatedProfile = {
  sandboxDelayMs: 100,
  startDelayMs: 100,
  stopDelayMs: 50,
  pullDelayMs: 500,
  imageSizeBytes: 50 * 2 ** 20,
  behave: () => ({}),
  pull: () => ({}),
}

const jobLabel = 'batch.kubernetes.io/job-name'

type PodFacts = Omit<SandboxFacts, 'logDirectory'>

function podOf({ metadata, labels, annotations }: PodFacts) {
  return { namespace: metadata.namespace, podName: metadata.name, labels, annotations }
}

/** @throws GrpcError for an annotation that cannot be read */
export function behaviourOf(profile: SimulatedProfile, config: ContainerFacts, sandbox: PodFacts, random: Random): SimulatedBehaviour {
  const container: SimulatedContainer = {
    ...podOf(sandbox),
    name: config.metadata.name,
    image: config.image.image,
    isInit: config.annotations[annotationKeys.kind] === 'init',
    restartCount: config.metadata.attempt,
  }
  const isMeantToEnd = config.annotations[annotationKeys.kind] !== undefined || container.labels[jobLabel] !== undefined
  const usual: SimulatedBehaviour = isMeantToEnd ? { exitAfterMs: 1000 } : {}
  return { ...usual, ...profile.behave(container), ...annotatedBehaviour(container, random) }
}

/** @throws GrpcError for an annotation that cannot be read */
export function pullBehaviourOf(profile: SimulatedProfile, image: string, sandbox: PodFacts, random: Random): SimulatedPull {
  return { ...profile.pull(image, podOf(sandbox)), ...annotatedPull(sandbox.annotations, random) }
}
