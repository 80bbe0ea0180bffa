/**
 * Limits how many sandboxes and containers are created and started at once (L3): more at once only make each of them slower.
 */
import type { RuntimeService } from '../core/runtimeService.ts'

export function limitStarts(runtime: RuntimeService, limit: number): RuntimeService {
  let active = 0
  const waiting: (() => void)[] = []
  const limited = async <T>(work: () => Promise<T>): Promise<T> => {
    if (active >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
    active++
    try {
      return await work()
    } finally {
      active--
      waiting.shift()?.()
    }
  }
  return {
    ...runtime,
    runPodSandbox: (config, handler, context) => limited(() => runtime.runPodSandbox(config, handler, context)),
    createContainer: (sandboxId, config, sandbox, context) => limited(() => runtime.createContainer(sandboxId, config, sandbox, context)),
    startContainer: (id, context) => limited(() => runtime.startContainer(id, context)),
  }
}
