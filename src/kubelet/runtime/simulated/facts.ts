/** What a simulated runtime keeps of the configurations of pods (L3): the rest is for processes, which a simulated container does not have. */
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'

export type SandboxFacts = Pick<PodSandboxConfig, 'metadata' | 'labels' | 'annotations' | 'logDirectory'>

export interface ContainerFacts extends Pick<ContainerConfig, 'metadata' | 'image' | 'labels' | 'annotations' | 'logPath'> {
  readonly linux: Pick<ContainerConfig['linux'], 'resources'>
}
