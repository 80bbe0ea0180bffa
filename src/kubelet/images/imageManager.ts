/**
 * Gets images onto the node (L3): pull policy, back-off, pull secrets, one pull at a time if so configured, upstream's events.
 * Upstream: kubelet/images/image_manager.go (v1.36).
 */
import type { PodSandboxConfig, RuntimeImage } from '#grpc/criTypes'
import type { KubeletContext } from '../context.ts'
import { BackOff } from '../pods/backOff.ts'
import type { FrozenContainer, FrozenPod } from '../pods/containers.ts'
import { podReference } from '../pods/podReference.ts'
import { StartError } from '../pods/startError.ts'
import { credentialsFor, withDefaultTag } from './imageReference.ts'

export interface ImageManager {
  /** The image, present on the node. @throws StartError with the waiting reason and message. */
  ensureImage(pod: FrozenPod, container: FrozenContainer, sandbox: PodSandboxConfig, signal?: AbortSignal): Promise<PulledImage>
  /** When an image was last asked for, in milliseconds: what image garbage collection goes by. */
  readonly lastUsedMs: ReadonlyMap<string, number>
}

export interface PulledImage {
  readonly imageRef: string
  readonly image: RuntimeImage | undefined
}

const initialBackOffMs = 10_000
const maxBackOffMs = 300_000

/** Go's time.Duration.String for spans of at least a microsecond, rounded to milliseconds as upstream rounds it. */
export function formatElapsed(ms: number): string {
  const rounded = Math.round(ms)
  if (rounded < 1000) return `${rounded}ms`
  const hours = Math.floor(rounded / 3_600_000)
  const minutes = Math.floor(rounded / 60_000) % 60
  const seconds = (rounded % 60_000) / 1000
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`
}

export function createImageManager(context: KubeletContext): ImageManager {
  const { clock, runtime, recorder } = context
  const backOff = new BackOff(clock, initialBackOffMs, maxBackOffMs)
  const failedAtMs = new Map<string, { ms: number; message: string }>()
  const lastUsedMs = new Map<string, number>()
  let serial: Promise<unknown> = Promise.resolve()

  const pull = (pod: FrozenPod, image: string, sandbox: PodSandboxConfig, signal: AbortSignal | undefined): Promise<string> => {
    const start = async () => runtime.pullImage(image, credentialsFor(image, await pullSecrets(context, pod)), sandbox, { signal })
    if (!context.config.serializeImagePulls) return start()
    const turn = serial.then(start, start)
    serial = turn.catch(() => {})
    return turn
  }

  const ensureImage = async (pod: FrozenPod, container: FrozenContainer, sandbox: PodSandboxConfig, signal?: AbortSignal): Promise<PulledImage> => {
    const reference = podReference(pod, container.name)
    const name = container.image ?? ''
    const image = withDefaultTag(name)
    if (image === undefined) {
      const message = `Failed to apply default image tag "${name}": couldn't parse image name "${name}": invalid reference format`
      recorder.event(reference, 'Warning', 'InspectFailed', message)
      throw new StartError('InvalidImageName', message)
    }
    const present = await runtime.imageStatus(image)
    const policy = container.imagePullPolicy ?? 'IfNotPresent'
    if (present && policy !== 'Always') {
      recorder.event(reference, 'Normal', 'Pulled', `Container image "${name}" already present on machine and can be accessed by the pod`)
      lastUsedMs.set(present.id, clock.now())
      return { imageRef: present.id, image: present }
    }
    if (policy === 'Never') {
      const message = `Container image "${name}" is not present with pull policy of Never`
      recorder.event(reference, 'Warning', 'ErrImageNeverPull', message)
      throw new StartError('ErrImageNeverPull', message)
    }
    const key = `${pod.metadata.uid}_${name}`
    const failure = failedAtMs.get(key)
    const waitMs = failure ? backOff.remainingMs(key, failure.ms) : 0
    if (waitMs > 0) {
      const message = `Back-off pulling image "${name}"`
      recorder.event(reference, 'Normal', 'BackOff', message)
      throw new StartError('ImagePullBackOff', `${message}: ErrImagePull: ${failure?.message}`, waitMs)
    }
    return pullNow({ pod, container, image, key, sandbox, signal })
  }

  const pullNow = async (request: {
    pod: FrozenPod
    container: FrozenContainer
    image: string
    key: string
    sandbox: PodSandboxConfig
    signal: AbortSignal | undefined
  }): Promise<PulledImage> => {
    const { pod, container, image, key } = request
    const reference = podReference(pod, container.name)
    recorder.event(reference, 'Normal', 'Pulling', `Pulling image "${container.image}"`)
    const startedMs = clock.monotonicMs()
    try {
      const imageRef = await pull(pod, image, request.sandbox, request.signal)
      const pulled = await runtime.imageStatus(imageRef)
      const elapsed = formatElapsed(clock.monotonicMs() - startedMs)
      const size = pulled ? ` Image size: ${pulled.size} bytes.` : ''
      recorder.event(reference, 'Normal', 'Pulled', `Successfully pulled image "${container.image}" in ${elapsed} (${elapsed} including waiting).${size}`)
      failedAtMs.delete(key)
      backOff.reset(key)
      lastUsedMs.set(pulled?.id ?? imageRef, clock.now())
      return { imageRef, image: pulled }
    } catch (error) {
      if (request.signal?.aborted) throw error
      const message = error instanceof Error ? error.message : String(error)
      recorder.event(reference, 'Warning', 'Failed', `Failed to pull image "${container.image}": ${message}`)
      const nowMs = clock.now()
      backOff.next(key, nowMs)
      failedAtMs.set(key, { ms: nowMs, message })
      // Looked at again before the wait is over, so that the status says that there is one.
      throw new StartError('ErrImagePull', message, backOff.remainingMs(key, nowMs) / 2)
    }
  }

  return { ensureImage, lastUsedMs }
}

/** The pod's pull secrets; those that do not exist are skipped, as upstream skips them. */
async function pullSecrets(context: KubeletContext, pod: FrozenPod): Promise<Readonly<Record<string, string>>[]> {
  const found = await Promise.all(
    (pod.spec.imagePullSecrets ?? []).map(({ name }) =>
      context.objects.secret(pod.metadata.namespace ?? '', name ?? '').then(
        (secret) => secret.data ?? {},
        () => undefined,
      ),
    ),
  )
  return found.filter((data) => data !== undefined)
}
