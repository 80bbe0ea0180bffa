/** How simulated pods behave (L3): a declared profile, so that tests and scale runs say what they simulate. */
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'
import { annotationKeys } from '../labels.ts'

export interface SimulatedRun {
  /** Absent: runs until stopped. */
  readonly exitAfterMs?: number | undefined
  readonly exitCode?: number | undefined
  readonly reason?: string | undefined
}

export interface SimulatedUsage {
  readonly cpuNanoCores: number
  readonly memoryBytes: number
}

export interface SimulatedProfile {
  readonly sandboxDelayMs: number
  readonly startDelayMs: number
  readonly stopDelayMs: number
  readonly pullDelayMs: number
  readonly imageSizeBytes: number
  run(container: ContainerConfig, sandbox: PodSandboxConfig): SimulatedRun
  usage(container: ContainerConfig, sandbox: PodSandboxConfig): SimulatedUsage
  /** Why an image cannot be pulled; undefined: it can. */
  pullError(image: string): string | undefined
  /** The exit code of exec and of every probe. */
  execExitCode(container: ContainerConfig, command: readonly string[]): number
}

/** Pod annotations that change one pod's behaviour: how long its containers run, how they end, what they use. */
export const simulatedAnnotations = {
  exitAfterSeconds: 'skiff.dev/simulated-exit-after-seconds',
  exitCode: 'skiff.dev/simulated-exit-code',
  cpuMilli: 'skiff.dev/simulated-cpu-milli',
  memoryBytes: 'skiff.dev/simulated-memory-bytes',
} as const

const jobLabel = 'batch.kubernetes.io/job-name'

/**
 * Pods come up within a second and stay; init containers and the pods of Jobs succeed after a second; usage is a tenth of what limits allow.
 */
export const defaultProfile: SimulatedProfile = {
  sandboxDelayMs: 100,
  startDelayMs: 100,
  stopDelayMs: 50,
  pullDelayMs: 500,
  imageSizeBytes: 50 * 2 ** 20,
  run: (container, sandbox) => {
    const seconds = sandbox.annotations[simulatedAnnotations.exitAfterSeconds]
    const isInit = container.annotations[annotationKeys.kind] === 'init'
    const exitCode = isInit ? 0 : Number(sandbox.annotations[simulatedAnnotations.exitCode] ?? 0)
    if (seconds !== undefined && !isInit) return { exitAfterMs: Number(seconds) * 1000, exitCode }
    return isInit || sandbox.labels[jobLabel] !== undefined ? { exitAfterMs: 1000, exitCode } : {}
  },
  usage: (container, sandbox) => {
    const { cpuShares = 2, memoryLimitInBytes = 100 * 2 ** 20 } = container.linux.resources
    const milli = Number(sandbox.annotations[simulatedAnnotations.cpuMilli] ?? (cpuShares * 1000) / 1024 / 10)
    const memoryBytes = Number(sandbox.annotations[simulatedAnnotations.memoryBytes] ?? memoryLimitInBytes / 10)
    return { cpuNanoCores: Math.round(milli * 1e6), memoryBytes: Math.round(memoryBytes) }
  },
  pullError: () => undefined,
  execExitCode: () => 0,
}
