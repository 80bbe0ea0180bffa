/**
 * Makes images present on the node (L3): pull policy, back-off, credentials, events and metrics.
 * In order: keyring.ts and credentialProviders.ts find the pod's credentials, pullRecords.ts decides whether a present image may be used with them,
 * imagePuller.ts queues the pull. imageGc.ts removes unused images; pauseImage.ts, busyboxImage.ts and ociTar.ts build the project's own images.
 * Upstream: kubelet/images/image_manager.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { PodSandboxConfig, RuntimeImage } from '#grpc/criTypes'
import { BackOff } from '../core/backOff.ts'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { formatElapsed } from '../core/formatElapsed.ts'
import { withDefaultTag } from '../core/imageReference.ts'
import { podReference } from '../core/podReference.ts'
import { StartError } from '../core/startError.ts'
import type { CredentialProviders } from './credentialProviders.ts'
import { createImagePuller, type PullResult } from './imagePuller.ts'
import { type Credentials, configsOfSecrets, lookUpCredentials, type PullSecret } from './keyring.ts'
import { openPullRecords, type PullRecords } from './pullRecords.ts'

export interface ImageManager {
  /** The image, present on the node. @throws StartError with the waiting reason and message. */
  ensureImage(pod: FrozenPod, container: FrozenContainer, sandbox: PodSandboxConfig, signal?: AbortSignal): Promise<PulledImage>
  /** Time of the last use of each image, in milliseconds, for image garbage collection. */
  readonly lastUsedMs: ReadonlyMap<string, number>
  /** Forgets removed images. */
  prune(images: readonly RuntimeImage[], beforeMs: number): Promise<void>
}

export interface PulledImage {
  readonly imageRef: string
  readonly image: RuntimeImage | undefined
}

const initialBackOffMs = 10_000
const maxBackOffMs = 300_000

/** What the runtime's error means to users: the waiting reason and message. */
export function pullFailure(image: string, message: string): { readonly reason: string; readonly message: string } {
  const known = [
    ['RegistryUnavailable', 'the registry is unavailable'],
    ['SignatureValidationFailed', 'the signature validation failed'],
  ] as const
  for (const [reason, why] of known) {
    if (message.startsWith(reason)) return { reason, message: `image pull failed for ${image} because ${why}${message.slice(reason.length)}` }
  }
  return { reason: 'ErrImagePull', message }
}

const mebi = 2 ** 20
const sizeBuckets: readonly (readonly [aboveBytes: number, label: string])[] = [
  [100 * 1024 * mebi, 'GT100GB'],
  [60 * 1024 * mebi, '60GB-100GB'],
  [40 * 1024 * mebi, '40GB-60GB'],
  [30 * 1024 * mebi, '30GB-40GB'],
  [20 * 1024 * mebi, '20GB-30GB'],
  [10 * 1024 * mebi, '10GB-20GB'],
  [5 * 1024 * mebi, '5GB-10GB'],
  [1024 * mebi, '1GB-5GB'],
  [500 * mebi, '500MB-1GB'],
  [100 * mebi, '100MB-500MB'],
  [10 * mebi, '10MB-100MB'],
  [0, '0-10MB'],
]

/** How kubelet_image_pull_duration_seconds names an image's size. */
export function sizeBucket(bytes: number): string {
  return sizeBuckets.find(([above]) => bytes > above)?.[1] ?? 'N/A'
}

function imageMetrics({ metrics }: KubeletContext) {
  return {
    pullSeconds: metrics.histogram({
      name: 'kubelet_image_pull_duration_seconds',
      help: 'How long pulls took, in seconds.',
      labels: ['image_size_in_bytes'],
      buckets: [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600],
    }),
    requests: metrics.counter({
      name: 'kubelet_image_manager_ensure_image_requests_total',
      help: 'How often an image was wanted.',
      labels: ['pull_policy', 'present_locally', 'pull_required'],
    }),
  }
}

interface Request {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly name: string
  readonly image: string
  readonly sandbox: PodSandboxConfig
  readonly signal: AbortSignal | undefined
}

/** @throws Error when the credential providers are configured wrongly */
export async function createImageManager(context: KubeletContext): Promise<ImageManager> {
  const { clock, runtime, recorder } = context
  const counters = imageMetrics(context)
  const providers = await credentialProviders(context)
  const records = await openPullRecords(context)
  const pull = createImagePuller(context)
  const failures = createFailures(context)
  const lastUsedMs = new Map<string, number>()

  const credentialsOf = async ({ pod, image }: Request): Promise<Credentials[]> =>
    lookUpCredentials(image, [...configsOfSecrets(await pullSecrets(context, pod)), ...(await providers.configsFor(image, pod))])

  const pullNow = async (request: Request): Promise<PulledImage> => {
    const { pod, container, name, image } = request
    const reference = podReference(pod, container.name)
    const key = `${pod.metadata.uid}_${name}`
    const waiting = failures.waiting(key)
    if (waiting) {
      const message = `Back-off pulling image "${name}"`
      recorder.event(reference, 'Normal', 'BackOff', message)
      throw new StartError('ImagePullBackOff', `${message}: ${waiting.message}`, waiting.ms)
    }
    recorder.event(reference, 'Normal', 'Pulling', `Pulling image "${name}"`)
    const startedMs = clock.monotonicMs()
    try {
      const { imageRef, tookMs } = await recorded(records, name, async () => pull(image, await credentialsOf(request), request.sandbox, request.signal))
      const pulled = await runtime.imageStatus(imageRef)
      const elapsedMs = clock.monotonicMs() - startedMs
      const times = `${formatElapsed(tookMs)} (${formatElapsed(elapsedMs)} including waiting)`
      recorder.event(reference, 'Normal', 'Pulled', `Successfully pulled image "${name}" in ${times}. Image size: ${pulled?.size ?? 0} bytes.`)
      counters.pullSeconds.observe(elapsedMs / 1000, { image_size_in_bytes: sizeBucket(pulled?.size ?? 0) })
      failures.forget(key)
      lastUsedMs.set(pulled?.id ?? imageRef, clock.now())
      return { imageRef, image: pulled }
    } catch (error) {
      if (request.signal?.aborted) throw error
      const text = messageOf(error)
      recorder.event(reference, 'Warning', 'Failed', `Failed to pull image "${name}": ${text}`)
      const { reason, message } = pullFailure(name, text)
      // The retry is due before the back-off ends, so that the status shows ImagePullBackOff.
      throw new StartError(reason, message, failures.note(key, `${reason}: ${message}`) / 2)
    }
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
    const policy = container.imagePullPolicy ?? 'IfNotPresent'
    const count = (present: boolean | 'unknown', required: boolean) =>
      counters.requests.inc({ pull_policy: policy.toLowerCase(), present_locally: String(present), pull_required: String(required) })
    const request: Request = { pod, container, name, image, sandbox, signal }
    if (policy === 'Always') {
      count('unknown', true)
      return pullNow(request)
    }
    const present = await runtime.imageStatus(image).catch((error: unknown) => {
      if (signal?.aborted) throw error
      const message = `Failed to inspect image "": ${messageOf(error)}`
      recorder.event(reference, 'Warning', 'InspectFailed', message)
      throw new StartError('ImageInspectError', message)
    })
    if (present && !(await records.mustPull(name, present.id, () => credentialsOf(request)))) {
      count(true, false)
      recorder.event(reference, 'Normal', 'Pulled', `Container image "${name}" already present on machine and can be accessed by the pod`)
      lastUsedMs.set(present.id, clock.now())
      return { imageRef: present.id, image: present }
    }
    count(present !== undefined, policy !== 'Never')
    if (policy === 'Never') {
      // The same message for an image that this pod may not use, so that the pod does not learn that it exists.
      const message = `Container image "${name}" is not present with pull policy of Never`
      recorder.event(reference, 'Warning', 'ErrImageNeverPull', message)
      throw new StartError('ErrImageNeverPull', message)
    }
    return pullNow(request)
  }

  return {
    ensureImage,
    lastUsedMs,
    prune: async (images, beforeMs) => {
      const present = new Set(images.map(({ id }) => id))
      for (const id of lastUsedMs.keys()) if (!present.has(id)) lastUsedMs.delete(id)
      await records.prune(images, beforeMs)
    },
  }
}

async function recorded(records: PullRecords, image: string, work: () => Promise<PullResult>): Promise<PullResult> {
  await records.intend(image)
  let result: PullResult | undefined
  try {
    result = await work()
    return result
  } finally {
    await (result ? records.pulled(image, result.imageRef, result.used) : records.failed(image))
  }
}

/** What went wrong with a pod's image last, and for how long it is not tried again. */
function createFailures({ clock }: KubeletContext) {
  const backOff = new BackOff(clock, initialBackOffMs, maxBackOffMs)
  const last = new Map<string, { readonly ms: number; readonly message: string }>()
  const forget = (key: string) => {
    last.delete(key)
    backOff.reset(key)
  }
  return {
    forget,
    waiting: (key: string): { readonly ms: number; readonly message: string } | undefined => {
      const failure = last.get(key)
      const ms = failure ? backOff.remainingMs(key, failure.ms) : 0
      return failure && ms > 0 ? { ms, message: failure.message } : undefined
    },
    /** Returns how long to wait now. */
    note: (key: string, message: string): number => {
      const nowMs = clock.now()
      // Forgets failures of pods that were deleted long ago.
      for (const [old, { ms }] of last) if (nowMs - ms > 2 * maxBackOffMs && old !== key) forget(old)
      backOff.next(key, nowMs)
      last.set(key, { ms: nowMs, message })
      return backOff.remainingMs(key, nowMs)
    },
  }
}

/** Pull secrets that are read at a time: a pod may name tens of thousands. */
const secretsAtOnce = 100

/** The pod's pull secrets; missing ones are skipped and named in an event. */
async function pullSecrets(context: KubeletContext, pod: FrozenPod): Promise<PullSecret[]> {
  const names = (pod.spec.imagePullSecrets ?? []).map(({ name }) => name ?? '').filter(Boolean)
  const missing: string[] = []
  const found: PullSecret[] = []
  const read = (name: string) =>
    context.objects.secret(pod.metadata.namespace ?? '', name).catch(() => {
      missing.push(name)
      return undefined
    })
  for (let at = 0; at < names.length; at += secretsAtOnce) {
    for (const secret of await Promise.all(names.slice(at, at + secretsAtOnce).map(read))) if (secret) found.push(secret)
  }
  if (missing.length > 0) {
    const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`
    context.recorder.event(podReference(pod), 'Warning', 'FailedToRetrieveImagePullSecret', message)
  }
  return found
}

/** The code of credential providers is loaded only on nodes that configure some. */
async function credentialProviders(context: KubeletContext): Promise<Pick<CredentialProviders, 'configsFor'>> {
  if (!context.config.imageCredentialProviderConfigPath || !context.host) return { configsFor: async () => [] }
  const { createCredentialProviders } = await import('./credentialProviders.ts')
  return createCredentialProviders(context, context.host)
}
