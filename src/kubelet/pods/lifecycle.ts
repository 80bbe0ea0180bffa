/** Lifecycle hooks (L3): exec, httpGet, tcpSocket and sleep. Upstream: kubelet/lifecycle/handlers.go (v1.36). */
import type { LifecycleHandler } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletContext } from '../context.ts'
import { httpRequest } from '../probes/http.ts'
import type { FrozenContainer } from './containers.ts'

/** A port by number or by the name of one of the container's ports. */
export function containerPort(port: number | string, container: FrozenContainer): number {
  if (typeof port === 'number') return port
  const named = container.ports?.find((candidate) => candidate.name === port)?.containerPort
  const number = named ?? Number(port)
  if (!Number.isInteger(number) || number < 1 || number > 65_535) throw new Error(`couldn't find port ${port}`)
  return number
}

/** Runs a hook to its end. @throws Error with what went wrong, for the FailedPostStartHook and FailedPreStopHook events. */
export async function runLifecycleHandler(
  context: KubeletContext,
  container: FrozenContainer,
  containerId: string,
  podIP: string,
  handler: Frozen<LifecycleHandler>,
  signal?: AbortSignal,
): Promise<void> {
  if (handler.exec) {
    const result = await context.runtime.execSync(containerId, handler.exec.command ?? [], 0, { signal })
    if (result.exitCode !== 0) {
      const output = Buffer.concat([result.stdout, result.stderr]).toString()
      throw new Error(
        `Exec lifecycle hook (${JSON.stringify(handler.exec.command)}) for Container "${container.name}" failed - error: command '${handler.exec.command?.join(' ')}' exited with ${result.exitCode}: , message: ${JSON.stringify(output)}`,
      )
    }
  } else if (handler.sleep) {
    await context.clock.sleep(handler.sleep.seconds * 1000, signal)
  } else if (handler.httpGet && context.host) {
    const { host, port, path, scheme, httpHeaders } = handler.httpGet
    const target = { host: host || podIP, port: containerPort(port, container), path: path ?? '/', https: scheme === 'HTTPS', headers: httpHeaders ?? [] }
    const response = await httpRequest(context.host, target, signal ?? AbortSignal.timeout(30_000))
    if (response.status >= 400)
      throw new Error(`HTTP lifecycle hook (${target.path}) for Container "${container.name}" failed - error: unexpected status ${response.status}`)
  }
}
