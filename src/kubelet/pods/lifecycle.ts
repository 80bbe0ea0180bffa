/** Lifecycle hooks (L3): exec, httpGet and sleep. Upstream: kubelet/lifecycle/handlers.go (v1.36). */
import type { HTTPGetAction, LifecycleHandler } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { abortScope, deadlineScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { kubernetesVersion } from '#base/version'
import { containerPort } from '../core/containerPort.ts'
import { type FrozenContainer, type FrozenPod, formatPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { type HttpTarget, httpRequest } from '../core/httpRequest.ts'
import { podReference } from '../core/podReference.ts'

export interface HookRequest {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly containerId: string
  readonly podIP: string
  readonly handler: Frozen<LifecycleHandler>
  readonly signal?: AbortSignal | undefined
}

/** Runs a hook to its end. @throws Error with what went wrong, in upstream's words */
export async function runLifecycleHandler(context: KubeletContext, request: HookRequest): Promise<void> {
  const { pod, container, handler } = request
  const where = `for Container "${container.name}" in Pod "${formatPod(pod)}" failed - error:`
  if (handler.exec) return execHook(context, request, `Exec lifecycle hook ([${(handler.exec.command ?? []).join(' ')}]) ${where}`)
  if (handler.sleep) {
    const { seconds } = handler.sleep
    try {
      await context.clock.sleep(seconds * 1000, request.signal)
    } catch {
      hookCounters(context).sleepTerminated.inc()
      throw new Error(`Sleep lifecycle hook (${seconds}) ${where} container terminated before sleep hook finished`)
    }
    return
  }
  if (!handler.httpGet) throw new Error(`Cannot run handler: invalid handler: ${JSON.stringify(handler)}`)
  // Nothing listens in a simulated container.
  if (!context.host) return
  try {
    await httpHook(context, request, handler.httpGet)
  } catch (error) {
    throw new Error(`HTTP lifecycle hook (${handler.httpGet.path ?? ''}) ${where} ${messageOf(error)}`)
  }
}

async function execHook(context: KubeletContext, { handler, containerId, signal }: HookRequest, intro: string): Promise<void> {
  const command = handler.exec?.command ?? []
  let answer: Awaited<ReturnType<typeof context.runtime.execSync>>
  try {
    answer = await context.runtime.execSync(containerId, command, 0, { signal })
  } catch (error) {
    throw new Error(`${intro} ${messageOf(error)}, message: ""`)
  }
  if (answer.exitCode === 0) return
  const output = Buffer.concat([answer.stdout, answer.stderr]).toString()
  throw new Error(`${intro} command '${command.join(' ')}' exited with ${answer.exitCode}: ${answer.stderr.toString()}, message: ${JSON.stringify(output)}`)
}

/** Limit of a hook over HTTP without a grace period. */
const defaultHookTimeoutMs = 30_000

/** Any HTTP status counts as success: only a hook without an answer has failed. */
async function httpHook(context: KubeletContext, { pod, container, podIP, signal }: HookRequest, action: Frozen<HTTPGetAction>): Promise<void> {
  const { host } = context
  if (!host) return
  const path = `/${(action.path ?? '').replace(/^\//, '')}`
  const target: HttpTarget = {
    host: action.host || podIP,
    port: containerPort(action.port, container),
    path,
    https: action.scheme === 'HTTPS',
    headers: action.httpHeaders ?? [],
    userAgent: `kube-lifecycle/${kubernetesVersion}`,
  }
  const ask = async (to: HttpTarget) => {
    using limit = signal ? abortScope(signal) : deadlineScope({ clock: context.clock, ms: defaultHookTimeoutMs })
    return await httpRequest(host, to, limit.signal)
  }
  try {
    await ask(target)
  } catch (error) {
    if (!target.https || !speaksPlainly(error)) throw error
    // Earlier versions called HTTPS hooks in plain HTTP. Containers that rely on it still work, and an event reports them.
    await ask({ ...target, https: false, headers: target.headers.filter(({ name }) => name.toLowerCase() !== 'authorization') })
    hookCounters(context).httpFallbacks.inc()
    const message = `request to HTTPS lifecycle hook ${target.host}:${target.port} got HTTP response, retry with HTTP succeeded`
    context.recorder.event(podReference(pod), 'Warning', 'LifecycleHTTPFallback', message)
  }
}

/** An answer in plain HTTP to a TLS greeting. */
function speaksPlainly(error: unknown): boolean {
  return ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO'].includes((error as { code?: string } | undefined)?.code ?? '')
}

function hookCounters({ metrics }: KubeletContext) {
  return {
    sleepTerminated: metrics.counter({
      name: 'kubelet_sleep_action_terminated_early_total',
      help: 'How many sleeps before a stop were cut short.',
    }),
    httpFallbacks: metrics.counter({
      name: 'kubelet_lifecycle_handler_http_fallbacks_total',
      help: 'How many hooks that asked for HTTPS found HTTP and went on with it.',
    }),
  }
}
