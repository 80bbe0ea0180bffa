/**
 * Pulls images one after another or side by side (L3), never faster than allowed, with one credential after another until one works.
 * Upstream: kubelet/images/puller.go, helpers.go, kuberuntime_image.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import { createTokenBucket } from '#client/workqueue/rateLimiter'
import type { PodSandboxConfig } from '#grpc/criTypes'
import type { KubeletContext } from '../core/context.ts'
import type { Credentials } from './keyring.ts'

export interface PullResult {
  readonly imageRef: string
  readonly used: Credentials | undefined
  /** Duration of the pull without the wait in the queue. */
  readonly tookMs: number
}

export type ImagePuller = (
  image: string,
  credentials: readonly Credentials[],
  sandbox: PodSandboxConfig,
  signal: AbortSignal | undefined,
) => Promise<PullResult>

export function createImagePuller(context: KubeletContext): ImagePuller {
  const { clock, config, runtime } = context
  const limit = config.serializeImagePulls ? 1 : (config.maxParallelImagePulls ?? Number.POSITIVE_INFINITY)
  // Simulated pulls cost no registry anything.
  const bucket = runtime.usesHost && config.registryPullQPS > 0 ? createTokenBucket(clock, config.registryPullQPS, config.registryBurst) : undefined
  const waiting: (() => void)[] = []
  let active = 0

  const pull: ImagePuller = async (image, credentials, sandbox, signal) => {
    if (bucket && !bucket.tryTake()) throw new Error('pull QPS exceeded')
    const startedMs = clock.monotonicMs()
    const failures: string[] = []
    for (const used of credentials.length > 0 ? credentials : [undefined]) {
      signal?.throwIfAborted()
      try {
        const imageRef = await runtime.pullImage(image, used?.auth, sandbox, { signal })
        return { imageRef, used, tookMs: clock.monotonicMs() - startedMs }
      } catch (error) {
        const message = messageOf(error)
        if (!failures.includes(message)) failures.push(message)
      }
    }
    throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(', ')}]`)
  }

  return async (image, credentials, sandbox, signal) => {
    if (active >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
    else active++
    try {
      return await pull(image, credentials, sandbox, signal)
    } finally {
      // The slot passes directly to the next pull in the queue.
      const next = waiting.shift()
      if (next) next()
      else active--
    }
  }
}
