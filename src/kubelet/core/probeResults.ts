/** The results of probes as the pod workers read them (L3): the interfaces that probes/probeManager.ts implements. Upstream: kubelet/prober/results (v1.36). */
import type { FrozenContainer } from './containers.ts'

export interface ProbeResults {
  /** True without a readiness probe, else its last result. */
  ready(containerId: string, container: FrozenContainer): boolean
  /** True without a startup probe, else whether it has succeeded. */
  started(containerId: string, container: FrozenContainer): boolean
}

/** The last results of a container's probes; undefined before the first one. */
export interface ProbeView {
  liveness(containerId: string): 'Success' | 'Failure' | undefined
  startup(containerId: string): 'Success' | 'Failure' | undefined
}
